"""The codec goes on behind a reference as if it had just decoded it; voices as references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from realtime_tts.errors import RequestError
from realtime_tts.model import Reference, ReferenceSound, SpeechModel, Voice, to_reference
from realtime_tts.model.codec import CodecDecoder


def codes(frames: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (frames, 16), generator=generator)


def test_speech_goes_on_behind_its_reference_bit_for_bit(model: SpeechModel) -> None:
    """In any slot, again and again, whatever was decoded elsewhere meanwhile."""
    reference, new, other = Reference(torch.ones(4), codes(21, 0)), codes(9, 1), codes(9, 2)
    assert reference.codes is not None
    codec = model.codec
    whole = codec.decode(torch.cat((reference.codes, new))[None], [0], codec.new_state(1))
    wanted = whole[0, 21 * 1920 :]
    plain = codec.decode(other[None], [0], codec.new_state(1))[0]
    state = codec.new_state(3)
    sound = ReferenceSound(codec, state)
    for slot in (2, 0, 2):
        state.reset([0, 1, 2])
        sound.begin(slot, reference)
        sound.begin(1, Reference(torch.ones(4)))
        found = codec.decode(torch.stack((new, other)), [slot, 1], state)
        assert torch.equal(found[0], wanted)
        assert torch.equal(found[1], plain)


def test_a_reference_is_heard_once(model: SpeechModel, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []
    decode = CodecDecoder.decode

    def listen(self: CodecDecoder, codes: torch.Tensor, *rest: Any) -> torch.Tensor:
        heard.append(codes.shape[1])
        return decode(self, codes, *rest)

    monkeypatch.setattr(CodecDecoder, "decode", listen)
    sound = ReferenceSound(model.codec, model.codec.new_state(4))
    one, other = (Reference(torch.ones(4), codes(frames, 0)) for frames in (5, 7))
    for slot, reference in enumerate((one, one, other, None)):
        sound.begin(slot, reference)
    assert heard == [4, 1, 4, 2, 1]  # 5 and 7 frames, in pieces that every codec takes


@pytest.mark.parametrize("behind", [None, 3, 30])
@pytest.mark.parametrize("spoken", [1, 9, 10, 11, 43, 90])
def test_the_codec_goes_on_behind_frames_that_were_spoken_elsewhere(
    spoken: int, behind: int | None, model: SpeechModel
) -> None:
    """Bit for bit, though most of them are heard by its transformer alone, and the oldest by
    nobody: more is behind the next sample than is in its state."""
    codec, reference = model.codec, None
    said, new = codes(spoken, 4), codes(12, 5)
    before = said
    if behind is not None:
        reference = Reference(torch.ones(4), codes(behind, 3))
        assert reference.codes is not None
        before = torch.cat((reference.codes, said))
    whole = codec.decode(torch.cat((before, new))[None], [0], codec.new_state(1))[0]
    state = codec.new_state(3)
    ReferenceSound(codec, state).begin(1, reference, said)
    found = codec.decode(new[None], [1], state)[0]
    assert torch.equal(found, whole[len(before) * 1920 :])


def encode(text: str) -> list[int]:
    return [ord(letter) for letter in text.replace("assistant\n", "an")]


def voice(**changes: Any) -> Voice:
    given: dict[str, Any] = {
        "name": "anna",
        "embedding": torch.ones(128),
        "codes": codes(3, 0),
        "transcript": " Hi. ",
        "model": "qwen3-tts-12hz-0b6",
    }
    return Voice(**{**given, **changes})


def test_a_voice_becomes_a_reference(load: Callable[[str], SpeechModel]) -> None:
    found = to_reference(voice(), load("base").config, encode)
    assert found.codes is not None and len(found.codes) == 3
    assert found.text_ids == (ord("H"), ord("i"), ord("."))
    assert found.text_ahead == 1
    alone = to_reference(voice(codes=None), load("base").config, encode)
    assert (alone.codes, alone.text_ids, alone.text_ahead) == (None, (), 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding": torch.ones(64)}, "'anna' was made for qwen3-tts-12hz-0b6: .* 64 numbers"),
        ({"codes": codes(3, 0)[:, :8]}, "8 codes per frame"),
        ({"codes": codes(3, 0) + 200}, "below 256"),
        ({"codes": codes(3, 0) - 200}, "below 256"),
    ],
)
def test_a_voice_of_another_checkpoint_is_refused(
    changes: dict[str, Any], message: str, load: Callable[[str], SpeechModel]
) -> None:
    with pytest.raises(RequestError, match=message):
        to_reference(voice(**changes), load("base").config, encode)
