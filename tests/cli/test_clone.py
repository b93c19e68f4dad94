"""`realtime-tts clone` and `voices`, against a server in a process of its own, and without one."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from realtime_tts.cli import main
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.client.voices import VoiceClient
from realtime_tts.errors import ConfigError, HandshakeRefused, RequestError, Unreachable
from realtime_tts.voices.maker import load_fake
from realtime_tts.voices.registry import Registry
from tests.voices import recordings


@pytest.fixture
def recording(tmp_path: Path) -> str:
    path = tmp_path / "ref.wav"
    path.write_bytes(recordings.encoded(recordings.voice()))
    return str(path)


def test_a_voice_is_cloned_listed_and_deleted(
    fake_server: str, key: str, recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", fake_server, "--api-key", key]
    words = ["--name", "anna", "--text", "Guten Tag.", "--language", "german"]
    assert main(["clone", recording, *words, *server]) == ExitStatus.OK
    told = capsys.readouterr().out
    assert "registered anna, with its manner of speaking" in told
    assert f'realtime-tts say --url {fake_server} --api-key KEY --voice anna "Hello there."' in told
    assert main(["clone", recording, "--name", "anna", *server]) == ExitStatus.USAGE
    assert "delete it first" in capsys.readouterr().err
    assert main(["voices", *server]) == ExitStatus.OK
    table = capsys.readouterr().out
    assert "alto" in table and "anna (german, in context, fake" in table
    assert main(["voices", "--json", *server]) == ExitStatus.OK
    shown = json.loads(capsys.readouterr().out)
    assert [voice["id"] for voice in shown["registered"]] == ["anna"]
    assert "anna" in shown["voices"]
    assert main(["voices", "--delete", "anna", *server]) == ExitStatus.OK
    assert "deleted anna" in capsys.readouterr().out
    assert main(["voices", "--delete", "anna", *server]) == ExitStatus.USAGE
    assert "no registered voice 'anna'" in capsys.readouterr().err


def test_what_cannot_be_cloned_is_said_in_one_line(
    fake_server: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--url", fake_server, "--api-key", key]
    bad = tmp_path / "bad.wav"
    for data, status, says in (
        (b"not audio", ExitStatus.USAGE, "none of them"),
        (recordings.encoded(recordings.voice(0.5)), ExitStatus.USAGE, "at least 1 s"),
        (bytes(10 * 1024 * 1024 + 1), ExitStatus.USAGE, "10 MB"),
    ):
        bad.write_bytes(data)
        assert main(["clone", str(bad), "--name", "anna", *server]) == status
        message = capsys.readouterr().err
        assert says in message and "Traceback" not in message
    missing = ["clone", str(tmp_path / "none.wav"), "--name", "anna"]
    assert main([*missing, *server]) == ExitStatus.FAILED
    assert "none.wav" in capsys.readouterr().err
    assert main(["clone", str(bad), "--name", "anna", "--voices-dir", "x"]) == ExitStatus.USAGE
    assert "give --model" in capsys.readouterr().err


def test_a_key_is_wanted(
    fake_server: str, recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["clone", recording, "--name", "anna", "--url", fake_server, "--api-key", "wrong-key"]
    assert main(words) == ExitStatus.NOT_ALLOWED
    assert "--api-key" in capsys.readouterr().err


def test_without_a_server_the_voice_lands_in_the_folder(
    recording: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = []

    def load(checkpoint: str) -> object:
        asked.append(checkpoint)
        return load_fake()

    monkeypatch.setattr("realtime_tts.engine.load.load_voice_maker", load)
    folder = tmp_path / "voices"
    words = ["clone", recording, "--name", "anna", "--voices-dir", str(folder)]
    assert main([*words, "--model", "some/Base"]) == ExitStatus.OK
    assert asked == ["some/Base"]
    assert "registered anna" in capsys.readouterr().out
    assert Registry(folder).get("anna").dimensions == 64
    assert main([*words, "--model", "some/Base"]) == ExitStatus.FAILED
    assert "delete it first" in capsys.readouterr().err
    assert len(list(folder.iterdir())) == 1


def test_the_client_says_who_did_not_answer() -> None:
    refusal = "no server answers at http://127.0.0.1:1/v1/voices: Connection refused"
    with pytest.raises(Unreachable, match=refusal) as refused:
        VoiceClient("ws://127.0.0.1:1").voices()
    assert refused.value.status == 0


def test_what_answers_in_another_protocol_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as peer:
                peer.sendall(b"220 mail.example ESMTP\r\n")
                while peer.recv(4_096):
                    pass

        peer = threading.Thread(target=answer)
        peer.start()
        client = VoiceClient(f"ws://127.0.0.1:{listener.getsockname()[1]}", timeout=30.0)
        with pytest.raises(HandshakeRefused, match=r"as an HTTP server: .* want https://\?"):
            client.voices()
        peer.join()


def test_a_key_that_cannot_be_sent_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="API key"):
        VoiceClient("ws://127.0.0.1:1", api_key="a-secret\n")


def test_names_are_quoted_on_their_way(fake_server: str, key: str) -> None:
    client = VoiceClient(fake_server, api_key=key)
    for name in ("../../livez", "a/b?c#d", "ä", "a b", "\udcff"):
        with pytest.raises((RequestError, HandshakeRefused)):
            client.delete(name)
