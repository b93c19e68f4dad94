"""Members that DNS names: HAProxy finds all of them, however many there are."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import cast

from realtime_tts.fleet.haproxy import IngressConfig, render
from realtime_tts.fleet.ingress import find_haproxy
from realtime_tts.fleet.runtime import RuntimeApi
from tests.fleet.running import free_port
from tests.waiting import until

_TYPE_A, _HEADER = 1, struct.Struct(">6H")
_TRUNCATED = 0x8380


class NameServer(asyncio.DatagramProtocol):
    """Gives each name so many addresses, or none where an answer is longer than may be."""

    def __init__(self, addresses: int) -> None:
        self._addresses = addresses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        number, _, _, _, _, further = _HEADER.unpack_from(data)
        end = data.index(0, _HEADER.size) + 5
        question = data[_HEADER.size : end]
        (kind,) = struct.unpack(">H", question[-4:-2])
        longest = struct.unpack_from(">H", data, end + 3)[0] if further else 512
        count = self._addresses if kind == _TYPE_A else 0
        records = b"".join(
            struct.pack(">HHHIH4B", 0xC00C, _TYPE_A, 1, 5, 4, 127, 0, 1, last)
            for last in range(1, count + 1)
        )
        answer = _HEADER.pack(number, 0x8180, 1, count, 0, 0) + question + records
        if len(answer) > longest:
            answer = _HEADER.pack(number, _TRUNCATED, 1, 0, 0, 0) + question
        self._transport.sendto(answer, peer)


async def test_haproxy_finds_more_servers_than_fit_into_a_usual_answer(tmp_path: Path) -> None:
    loop, socket = asyncio.get_running_loop(), tmp_path / "socket"
    names, _ = await loop.create_datagram_endpoint(
        lambda: NameServer(60), local_addr=("127.0.0.1", 0)
    )
    port = names.get_extra_info("sockname")[1]
    config = IngressConfig(bind=f"127.0.0.1:{free_port()}", slots=64, dns="servers.example")
    text = render(config, (), socket)
    assert "parse-resolv-conf" in text
    file = tmp_path / "haproxy.cfg"
    file.write_text(text.replace("parse-resolv-conf", f"nameserver here 127.0.0.1:{port}"))
    haproxy = await asyncio.create_subprocess_exec(find_haproxy(), "-db", "-f", str(file))
    try:
        await until(socket.exists)

        async def found() -> bool:
            state = await RuntimeApi(socket).ask("show servers state servers")
            return state.count(" 127.0.1.") == 60

        deadline = loop.time() + 20
        while not await found():
            assert loop.time() < deadline
            await asyncio.sleep(0.1)
    finally:
        haproxy.kill()
        await haproxy.wait()
        names.close()
