"""TLS on the server's sockets: what it takes, what it refuses, and that speech comes as without."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import ssl
import stat
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from realtime_tts import CertificateRefused, ConfigError, HandshakeRefused, RealtimeTTS
from realtime_tts.client.voices import VoiceClient
from realtime_tts.config import ServerConfig, SocketConfig, TlsConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.server.self_signed import write_self_signed
from realtime_tts.server.tls import Certificate, server_context
from tests.server.speaking import speaking

TEXT = "A sentence of some length."  # 26 tokens of one byte, 80 ms each


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsConfig:
    return write_self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def config(tls: TlsConfig) -> ServerConfig:
    return ServerConfig(port=0, tls=tls)


YESTERDAY, TOMORROW = timedelta(days=-1), timedelta(days=1)


def certificate(
    folder: Path,
    begins: timedelta = YESTERDAY,
    ends: timedelta = TOMORROW,
    use: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
) -> TlsConfig:
    """A certificate for these times from now and this use, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "both.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return TlsConfig(str(path))


# Files.


def test_a_certificate_and_its_key_may_be_in_one_file(tmp_path: Path) -> None:
    made = certificate(tmp_path)
    context = server_context(made)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_when_a_certificate_expires_is_known_and_a_renewed_one_later(tmp_path: Path) -> None:
    served = Certificate(certificate(tmp_path, ends=timedelta(days=3)))
    assert served.expires == pytest.approx(time.time() + 3 * 86_400, abs=60)
    made = certificate(tmp_path, ends=timedelta(days=90))
    take_over = served.prepare(ServerConfig(tls=made))
    assert served.expires == pytest.approx(time.time() + 3 * 86_400, abs=60)
    take_over()
    assert served.expires == pytest.approx(time.time() + 90 * 86_400, abs=60)


def test_only_its_owner_can_read_the_key_that_is_made(tls: TlsConfig) -> None:
    assert tls.key is not None
    assert stat.S_IMODE(os.stat(tls.key).st_mode) == 0o600


@pytest.mark.parametrize(
    ("begins", "ends", "reason"), [(-2, -1, "expired"), (1, 2, "not yet valid")]
)
def test_a_certificate_that_clients_would_refuse_today_is_refused(
    tmp_path: Path, begins: int, ends: int, reason: str
) -> None:
    made = certificate(tmp_path, timedelta(days=begins), timedelta(days=ends))
    with pytest.raises(ConfigError, match=reason):
        server_context(made)


def test_a_certificate_that_is_for_clients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="purpose"):
        server_context(certificate(tmp_path, use=ExtendedKeyUsageOID.CLIENT_AUTH))


def test_files_that_cannot_be_used_are_told_apart(tls: TlsConfig, tmp_path: Path) -> None:
    other = certificate(tmp_path).certificate
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n")
    for wrong, message in (
        (TlsConfig(str(tmp_path / "none.pem"), tls.key), "cannot read the TLS certificate"),
        (TlsConfig(tls.certificate, str(tmp_path / "none.pem")), "cannot read the TLS private key"),
        (TlsConfig(tls.certificate), "no private key"),
        (TlsConfig(str(tls.key), tls.key), "no certificate"),
        (TlsConfig(tls.certificate, other), "does not belong to the certificate"),
        (TlsConfig(str(garbage), tls.key), "cannot use the TLS files"),
    ):
        with pytest.raises(ConfigError, match=message):
            server_context(wrong)


def test_a_server_says_nothing_behind_the_handshake_until_it_is_asked(tls: TlsConfig) -> None:
    """A ticket there cost a client that reads in another thread its first request."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(back, there)
    serving = server_context(tls).wrap_bio(there, back, server_side=True)
    for side in (asking, serving):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
    asking.do_handshake()
    assert not back.pending
    serving.do_handshake()
    assert asking.version() == "TLSv1.3"
    assert not back.pending


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_a_password(
    tls: TlsConfig, tmp_path: Path
) -> None:
    assert tls.key is not None
    key = serialization.load_pem_private_key(Path(tls.key).read_bytes(), None)
    path = tmp_path / "encrypted.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match="is encrypted"):
        server_context(TlsConfig(tls.certificate, str(path)))


# Speech.


async def test_speech_over_wss_is_that_over_ws(config: ServerConfig, tls: TlsConfig) -> None:
    heard = []
    for one in (config, ServerConfig(port=0)):
        async with speaking(one) as server:
            ca = tls.certificate if one.tls else None
            async with RealtimeTTS(server.running.websocket_url, tls_ca=ca, seed=1) as tts:
                heard.append(b"".join([packet async for packet in tts.speak(TEXT)]))
    assert heard[0] == heard[1]


async def test_the_certificate_holds_for_every_name_of_this_machine(
    config: ServerConfig, tls: TlsConfig
) -> None:
    async with speaking(config) as server:
        for name in ("localhost", "127.0.0.1", "::1", socket.gethostname()):
            trust = ssl.create_default_context(cafile=tls.certificate)
            _, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=trust, server_hostname=name
            )
            writer.close()
            await writer.wait_closed()


async def test_strict_clients_take_the_certificate_that_is_made(
    config: ServerConfig, tls: TlsConfig
) -> None:
    """Python 3.13's default, and without the leniency towards a certificate that is no root."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.verify_flags |= ssl.VERIFY_X509_STRICT
    trust.load_verify_locations(tls.certificate)
    async with speaking(config) as server:
        _, writer = await asyncio.open_connection("localhost", server.port, ssl=trust)
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.close()
        await writer.wait_closed()


async def test_older_versions_than_1_2_are_refused(config: ServerConfig, tls: TlsConfig) -> None:
    context = ssl.create_default_context(cafile=tls.certificate)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with speaking(config) as server:
        assert await _version(server.port, context) == "TLSv1.2"
        with pytest.warns(DeprecationWarning):
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await _version(server.port, context)


async def _version(port: int, context: ssl.SSLContext) -> str:
    _, writer = await asyncio.open_connection("localhost", port, ssl=context)
    version: str = writer.get_extra_info("ssl_object").version()
    writer.close()
    await writer.wait_closed()
    return version


async def test_no_packet_waits_for_an_acknowledgement(
    config: ServerConfig, tls: TlsConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nagle's algorithm is off under TLS, too, and the kernel's buffer as small as without."""
    from realtime_tts.server.websocket import GuardedWebSocket

    sockets: list[Any] = []
    made = GuardedWebSocket.connection_made

    def connection_made(self: Any, transport: asyncio.BaseTransport) -> None:
        made(self, transport)
        sockets.append(transport.get_extra_info("socket"))

    monkeypatch.setattr(GuardedWebSocket, "connection_made", connection_made)
    async with speaking(config) as server:
        async with RealtimeTTS(server.running.websocket_url, tls_ca=tls.certificate):
            (connection,) = sockets
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            size = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
            assert size <= 2 * SocketConfig().send_buffer  # Linux doubles what it is told


async def test_every_packet_is_a_record_that_can_be_read_at_once(
    config: ServerConfig, tls: TlsConfig
) -> None:
    """The first packet arrives while the server still has the others to make."""
    slow = FakeEngineConfig(frames_per_token=1, step_seconds=0.05)
    async with speaking(config, engine=slow) as server:
        async with RealtimeTTS(server.running.websocket_url, tls_ca=tls.certificate) as tts:
            turn = await tts.turn()
            await turn.send(TEXT)
            await turn.end()
            first = await anext(aiter(turn))
            assert first and server.engine.open_utterances == 1
            await turn.interrupt()


async def test_voices_and_the_page_come_over_https(config: ServerConfig, tls: TlsConfig) -> None:
    async with speaking(config) as server:
        client = VoiceClient(server.running.url, tls_ca=tls.certificate)
        assert "alto" in (await asyncio.to_thread(client.voices))["voices"]
        page = await _get(server.port, tls, "/")
        assert page.startswith(b"HTTP/1.1 200") and b"</html>" in page


async def test_the_page_s_own_origin_is_let_in_over_wss(
    config: ServerConfig, tls: TlsConfig
) -> None:
    trust = ssl.create_default_context(cafile=tls.certificate)
    async with speaking(config) as server:
        own = {"Origin": server.running.url}
        async with websockets.connect(
            server.running.websocket_url, ssl=trust, additional_headers=own, proxy=None
        ) as page:
            assert json.loads(await page.recv())["type"] == "ready"


async def _get(port: int, tls: TlsConfig, path: str) -> bytes:
    trust = ssl.create_default_context(cafile=tls.certificate)
    reader, writer = await asyncio.open_connection("localhost", port, ssl=trust)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
async def test_curl_trusts_the_file(config: ServerConfig, tls: TlsConfig) -> None:
    async with speaking(config) as server:
        url = f"https://localhost:{server.port}/v1/voices"
        command = ["curl", "--silent", "--show-error", "--noproxy", "*"]
        trusting = await _run([*command, "--cacert", tls.certificate, url])
        assert "alto" in trusting.stdout
        assert (await _run([*command, url])).returncode == 60  # not trusted


async def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=30
    )


# Refusals.


async def test_a_client_that_trusts_others_says_so_and_does_not_try_again(
    config: ServerConfig, tmp_path: Path
) -> None:
    other = write_self_signed(tmp_path).certificate
    async with speaking(config) as server:
        for ca in (None, other):
            tts = RealtimeTTS(server.running.websocket_url, tls_ca=ca)
            with pytest.raises(CertificateRefused, match="not trusted.*--tls-ca"):
                await tts.connect(retry_for=60)
            client = VoiceClient(server.running.url, tls_ca=ca)
            with pytest.raises(CertificateRefused, match="not trusted"):
                await asyncio.to_thread(client.voices)
        await server.settled()


def test_a_file_of_authorities_must_be_one_and_of_use(tmp_path: Path, tls: TlsConfig) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        RealtimeTTS("wss://127.0.0.1", tls_ca=str(tmp_path / "none.pem"))
    (tmp_path / "empty.pem").write_text("nothing\n")
    with pytest.raises(ConfigError, match="no certificate in"):
        RealtimeTTS("wss://127.0.0.1", tls_ca=str(tmp_path / "empty.pem"))
    with pytest.raises(ConfigError, match="wss://"):
        RealtimeTTS("ws://127.0.0.1", tls_ca=tls.certificate)


async def test_ws_on_a_tls_port_and_wss_on_a_plain_one_end_with_a_hint(
    config: ServerConfig, tls: TlsConfig
) -> None:
    async with speaking(config) as server:
        with pytest.raises(HandshakeRefused, match="wss://"):
            await RealtimeTTS(f"ws://127.0.0.1:{server.port}").connect()
        plain = VoiceClient(f"http://127.0.0.1:{server.port}")
        with pytest.raises(HandshakeRefused, match="https://"):
            await asyncio.to_thread(plain.voices)
    async with speaking() as server:
        wrong = RealtimeTTS(f"wss://127.0.0.1:{server.port}", tls_ca=tls.certificate)
        with pytest.raises(HandshakeRefused, match="does not speak TLS"):
            await wrong.connect()
        over_http = VoiceClient(f"https://127.0.0.1:{server.port}", tls_ca=tls.certificate)
        with pytest.raises(HandshakeRefused, match="does not speak TLS.*http://"):
            await asyncio.to_thread(over_http.voices)


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\0" * 64])
async def test_who_does_not_speak_tls_is_cut_off_at_once(
    peer: Callable[..., Any], config: ServerConfig, words: bytes
) -> None:
    patient = replace(config, socket=SocketConfig(handshake_timeout=120))
    async with speaking(patient) as server:
        stranger = await peer(server.port)
        await stranger.send(words)
        assert await stranger.ended(), "long before the deadline for a handshake"


async def test_who_says_nothing_is_cut_off_after_the_handshake_s_deadline(
    peer: Callable[..., Any], tls: TlsConfig
) -> None:
    config = ServerConfig(port=0, tls=tls, socket=SocketConfig(handshake_timeout=0.3))
    async with speaking(config) as server:
        silent = await peer(server.port)
        assert await silent.ended()


async def test_a_client_that_stops_reading_is_dropped_and_others_speak_on(tls: TlsConfig) -> None:
    config = ServerConfig(port=0, tls=tls, socket=SocketConfig(write_stall=0.5))
    trust = ssl.create_default_context(cafile=tls.certificate)
    async with speaking(config) as server:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.connect(("127.0.0.1", server.port))
        slow = await asyncio.to_thread(trust.wrap_socket, raw, server_hostname="localhost")
        head, turn = _long_turn()
        await asyncio.to_thread(slow.sendall, head)
        assert b" 101 " in await asyncio.to_thread(slow.recv, 1_000)
        await asyncio.to_thread(slow.sendall, turn)
        async with RealtimeTTS(server.running.websocket_url, tls_ca=tls.certificate) as tts:
            async with asyncio.timeout(30):
                while not server.value("tts_slow_reader_aborts_total"):
                    assert [packet async for packet in tts.speak("Hi.")]
        slow.close()
        await server.settled()


def _long_turn() -> tuple[bytes, bytes]:
    """A handshake, and a turn of more sound than all buffers hold."""
    head = (
        "GET /v1/tts?lead_ms=30000 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    text = {"type": "text", "turn_id": "t", "text": TEXT * 20, "end": True}
    payload = json.dumps(text).encode()
    return head.encode(), b"\x81\xfe" + struct.pack("!H", len(payload)) + bytes(4) + payload
