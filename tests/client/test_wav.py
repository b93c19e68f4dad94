import asyncio
import threading
import wave
from pathlib import Path
from typing import Any

import pytest

from realtime_tts import speak_to_wav
from realtime_tts.errors import ConfigError, HandshakeRefused
from realtime_tts.protocol.messages import Text
from tests.client.conftest import StandIn


async def test_a_script_gets_a_wav_file(stand_in: StandIn, tmp_path: Path) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        text = await peer.receive(Text)
        await peer.started(text.turn_id)
        await peer.audio(1920, 2048, 32)
        await peer.done(text.turn_id, samples=4000)
        await peer.until_closed()

    url = await stand_in.start(script)
    path = tmp_path / "out.wav"
    result = await asyncio.to_thread(speak_to_wav, "Hello.", path, url)
    assert result.samples == 4000
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        assert file.getnframes() == 4000


def test_errors_come_out_of_the_script_s_call(tmp_path: Path) -> None:
    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(HandshakeRefused):
        speak_to_wav("Hello.", tmp_path / "out.wav", "127.0.0.1:9")


@pytest.mark.parametrize(
    "audio", [{"encoding": "mp3"}, {"container": "wav"}, {"encoding": "pcm_mulaw"}]
)
def test_a_wav_file_takes_no_other_encoding(tmp_path: Path, audio: Any) -> None:
    path = tmp_path / "out.wav"
    with pytest.raises(ConfigError, match="writes pcm_s16le"):
        speak_to_wav("Hello.", path, "127.0.0.1:9", audio=audio)
    assert not path.exists()
