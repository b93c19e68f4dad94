"""`say` and `voices` as a user runs them: processes, pipes and signals."""

import array
import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
import wave
from pathlib import Path
from typing import BinaryIO

import pytest

from realtime_tts.cli import main
from realtime_tts.cli.say import _on_interrupt
from tests.waiting import settled, wait_until

TEXT = "The tide is coming in."


def command(name: str, url: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "realtime_tts", name, "--url", url, *words]


@pytest.fixture
def environment(key: str, tmp_path: Path) -> dict[str, str]:
    """With the key, and without any audio player."""
    return os.environ | {"REALTIME_TTS_API_KEY": key, "PATH": str(tmp_path), "COLUMNS": "200"}


def run(
    words: list[str],
    environment: dict[str, str],
    *,
    cwd: Path | None = None,
    input: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words, capture_output=True, env=environment, timeout=60, cwd=cwd, input=input
    )


def frames(path: Path) -> int:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        return file.getnframes()


def test_a_text_becomes_a_wav_file(
    fake_server: str, environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "out.wav"
    done = run(command("say", fake_server, TEXT, "-o", str(path)), environment)
    assert done.returncode == 0, done.stderr
    assert frames(path) > 24_000
    assert b"first packet after" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("name", "flags", "container", "codec", "rate"),
    [
        ("out.mp3", (), "mp3", "mp3float", 24_000),
        ("out.OGG", (), "ogg", "opus", 48_000),  # Opus is always decoded at 48 kHz
        ("out.flac", ("--format", "flac_16000"), "flac", "flac", 16_000),
        ("out.wav", ("--format", "wav_16000"), "wav", "pcm_s16le", 16_000),
        ("out.wav", ("--format", "ulaw"), "wav", "pcm_mulaw", 8_000),
        ("out.song", ("--format", "mp3_44100_64"), "mp3", "mp3float", 44_100),
    ],
)
def test_the_suffix_and_the_format_choose_what_a_file_holds(
    fake_server: str,
    key: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    flags: tuple[str, ...],
    container: str,
    codec: str,
    rate: int,
) -> None:
    path = tmp_path / name
    words = ["say", "--url", fake_server, "--api-key", key, TEXT, "-o", str(path), *flags]
    status, told = main(words), capsys.readouterr().err
    assert status == 0, told
    av = pytest.importorskip("av", reason="the formats need the extra codecs")
    with av.open(str(path)) as file:
        stream = file.streams.audio[0]
        assert (file.format.name, stream.codec.name, stream.rate) == (container, codec, rate)
        samples = sum(frame.samples for frame in file.decode(audio=0))
    seconds = float(told.split(" s of speech")[0])
    assert samples / rate == pytest.approx(seconds, abs=0.1)


def test_standard_output_takes_any_format(fake_server: str, environment: dict[str, str]) -> None:
    words = command("say", fake_server, TEXT, "-q", "-o", "-", "--format", "wav")
    done = run(words, environment)
    assert (done.returncode, done.stderr) == (0, b"")
    header, pcm = done.stdout[:44], done.stdout[44:]
    assert header.startswith(b"RIFF\xff\xff\xff\xffWAVE")  # of a stream: until the end
    assert len(pcm) > 48_000


def test_the_flags_reach_the_server(
    fake_server: str, environment: dict[str, str], tmp_path: Path
) -> None:
    sounds = []
    for voice in ("alto", "bass"):
        path = tmp_path / f"{voice}.wav"
        words = ("--voice", voice, "--temperature", "0", "--seed", "1", "-q", "-o", str(path))
        done = run(command("say", fake_server, TEXT, *words), environment)
        assert (done.returncode, done.stderr) == (0, b"")
        sounds.append(path.read_bytes())
    assert sounds[0] != sounds[1]


def test_without_a_player_it_writes_a_file_and_says_so(
    fake_server: str, environment: dict[str, str], tmp_path: Path
) -> None:
    done = run(command("say", fake_server, TEXT), environment, cwd=tmp_path)
    assert done.returncode == 0
    found = b"no audio player found (aplay, paplay, pw-cat, play, ffplay): written to speech.wav"
    assert found in done.stderr
    assert frames(tmp_path / "speech.wav") > 24_000


def test_a_player_is_fed_while_it_plays(
    fake_server: str, environment: dict[str, str], tmp_path: Path
) -> None:
    player = tmp_path / "aplay"
    copy = tmp_path / "played"
    player.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open({str(copy)!r}, 'wb').write(sys.stdin.buffer.read())\n"
    )
    player.chmod(0o755)
    done = run(command("say", fake_server, TEXT), environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"aplay" in done.stderr
    assert copy.stat().st_size > 48_000
    assert not (tmp_path / "speech.wav").exists()


def test_a_player_without_a_sound_card_is_passed_over(
    fake_server: str, environment: dict[str, str], tmp_path: Path
) -> None:
    player = tmp_path / "aplay"
    player.write_text(f"#!{sys.executable}\nraise SystemExit('[card] not found')\n")
    player.chmod(0o755)
    done = run(command("say", fake_server, TEXT), environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"aplay ended with exit status 1: [card] not found\n" in done.stderr
    assert b"no audio player worked: written to speech.wav" in done.stderr
    assert frames(tmp_path / "speech.wav") > 24_000


def test_audio_leaves_before_standard_input_ends(
    fake_server: str, environment: dict[str, str]
) -> None:
    words = command("say", fake_server, "--stdin", "-o", "-", "-q")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=environment, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"The tide is coming")
        process.stdin.flush()
        first = os.read(process.stdout.fileno(), 100)  # the text is still open
        assert len(first) > 0
        process.stdin.write(" in – again…".encode())
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(timeout=30) == 0
    assert (len(first) + len(rest)) % 2 == 0
    assert len(rest) > 48_000


@pytest.mark.parametrize("words", [["-"], ["--stdin"], []])
def test_standard_input_is_read_without_a_flag_when_it_is_a_pipe(
    fake_server: str, environment: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    path = tmp_path / "out.wav"
    line = [*command("say", fake_server, "-o", str(path)), *words]
    assert run(line, environment, input=TEXT.encode()).returncode == 0
    assert frames(path) > 24_000


def test_control_c_stops_and_tells_what_was_heard(
    fake_server: str, environment: dict[str, str], tmp_path: Path
) -> None:
    player = tmp_path / "aplay"
    begun = tmp_path / "begun"
    player.write_text(
        f"#!{sys.executable}\nimport sys, time\nsys.stdin.buffer.read(24_000)\n"
        f"open({str(begun)!r}, 'w').close()\ntime.sleep(60)\n"
    )
    player.chmod(0o755)
    words = command("say", fake_server, " ".join([TEXT] * 20))
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        wait_until(begun.exists)
        interrupted_at = time.monotonic()
        process.send_signal(signal.SIGINT)
        message = process.stderr.read().decode()
        assert process.wait(timeout=30) == 130
        assert time.monotonic() - interrupted_at < 30
    assert "interrupted after" in message
    assert "not heard" in message
    assert "Traceback" not in message


def test_a_second_control_c_ends_it_between_two_steps_of_a_task() -> None:
    broken_into = []

    async def saying() -> None:
        first = asyncio.Event()
        with _on_interrupt(first.set):
            os.kill(os.getpid(), signal.SIGINT)
            await first.wait()
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt as error:
                broken_into.append(error)
            await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(saying())
    assert not broken_into


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much a pipe holds")
def test_control_c_is_heard_while_a_pipe_is_full(
    fake_server: str, environment: dict[str, str], tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.pcm"
    os.mkfifo(pipe)
    words = command("say", fake_server, " ".join([TEXT] * 20), "-o", str(pipe))
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        with pipe.open("rb") as reader:
            room = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
            # It is written in pieces of up to 8 KB; then comes one that does not fit.
            wait_until(lambda: waiting_in(reader) > room - 8_192)
            asyncio.run(settled(lambda: waiting_in(reader)))
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(timeout=30) == 130
            finally:
                process.kill()
        message = process.stderr.read().decode()
    assert "interrupted after" in message and "Traceback" not in message


def waiting_in(reader: BinaryIO) -> int:
    """Bytes that were written and not read."""
    size = array.array("i", [0])
    fcntl.ioctl(reader, termios.FIONREAD, size)
    return size[0]


def test_a_wrong_key_a_wrong_voice_and_no_text_have_their_own_status(
    fake_server: str, environment: dict[str, str]
) -> None:
    done = run(command("say", fake_server, TEXT, "--api-key", "another-key"), environment)
    assert done.returncode == 4
    assert b"--api-key" in done.stderr
    done = run(command("say", fake_server, TEXT, "--voice", "nobody"), environment)
    assert done.returncode == 2
    assert b"alto" in done.stderr
    done = run(command("say", fake_server, "🎉"), environment)
    assert done.returncode == 0
    assert b"nothing to speak" in done.stderr


def test_voices_are_listed_for_people_and_programs(
    fake_server: str, environment: dict[str, str]
) -> None:
    done = run(command("voices", fake_server), environment)
    assert done.returncode == 0
    assert "alto, bass, soprano, tenor" in done.stdout.decode()
    done = run(command("voices", fake_server, "--json"), environment)
    assert json.loads(done.stdout)["voices"] == ["alto", "bass", "soprano", "tenor"]
