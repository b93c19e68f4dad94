"""The codec carries its state: frames in any pieces, rows in any company, the same samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import pytest
import torch
from torch import Tensor

from realtime_tts.model import SpeechModel
from realtime_tts.model.codec import CodecDecoder
from realtime_tts.model.codec_state import CodecState
from realtime_tts.model.weights import Weights

FRAME = 1920
FRAMES = 24  # three windows of this checkpoint's attention


@pytest.fixture(scope="module")
def codec(model: SpeechModel) -> CodecDecoder:
    return model.codec


@pytest.fixture(scope="module")
def codes(model: SpeechModel) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    size = model.config.codec.codebook_size
    return torch.randint(0, size, (4, FRAMES, 16), generator=generator)


@pytest.fixture(scope="module")
def whole(codec: CodecDecoder, codes: Tensor) -> Tensor:
    """Every stream decoded alone and at once, [4, FRAMES * 1920]."""
    return torch.cat([codec.decode(row[None], [0], codec.new_state(1)) for row in codes])


def in_pieces(
    codec: CodecDecoder, codes: Tensor, slots: list[int], state: CodecState, sizes: list[int]
) -> Tensor:
    pieces, at = [], 0
    for size in cycle(sizes):
        pieces.append(codec.decode(codes[:, at : at + size], slots, state))
        at += size
        if at >= codes.shape[1]:
            return torch.cat(pieces, 1)
    raise AssertionError("unreachable")


def assert_same(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("sizes", [[1], [2], [8], [1, 1, 2, 4], [5, 1, 7, 3], [17]])
def test_frames_in_any_pieces_give_the_samples_of_all_at_once(
    sizes: list[int], codec: CodecDecoder, codes: Tensor, whole: Tensor
) -> None:
    state = codec.new_state(1)
    found = in_pieces(codec, codes[:1], [0], state, sizes)
    assert_same(found, whole[:1])
    assert state.frames.tolist() == [FRAMES]


def test_a_frame_is_1920_samples_between_minus_one_and_one(whole: Tensor) -> None:
    assert whole.shape == (4, FRAMES * FRAME)
    assert whole.abs().max() <= 1
    assert whole.std() > 0.01


def test_rows_are_independent_of_each_other(
    codec: CodecDecoder, codes: Tensor, whole: Tensor
) -> None:
    """Streams begin at different times, share some calls and not others, in shuffled slots."""
    state = codec.new_state(9)
    slots, fed = [7, 2, 0, 5], [0] * 4
    made: list[list[Tensor]] = [[] for _ in slots]
    for step in range(200):
        size = 1 + step % 3
        rows = [
            row
            for row in range(4)
            if step >= 3 * row and (step + row) % 4 and fed[row] + size <= FRAMES
        ]
        if rows:
            piece = torch.stack([codes[row, fed[row] : fed[row] + size] for row in rows])
            for row, samples in zip(
                rows, codec.decode(piece, [slots[row] for row in rows], state), strict=True
            ):
                made[row].append(samples)
                fed[row] += size
    assert fed == [FRAMES] * 4
    assert_same(torch.stack([torch.cat(samples) for samples in made]), whole)


@pytest.mark.parametrize(
    "which", [lambda: [1], lambda: torch.tensor([False, True, False])], ids=["slots", "mask"]
)
def test_a_reset_slot_starts_anew_and_the_others_go_on(
    which: Callable[[], list[int] | Tensor], codec: CodecDecoder, codes: Tensor, whole: Tensor
) -> None:
    state, half = codec.new_state(3), FRAMES // 2
    codec.decode(codes[:3, :half], [0, 1, 2], state)
    state.reset(which())
    rest = codec.decode(codes[[0, 2], half:], [0, 2], state)
    assert_same(rest, whole[[0, 2], half * FRAME :])
    assert_same(codec.decode(codes[1:2], [1], state), whole[1:2])


def test_the_future_does_not_change_the_past(
    codec: CodecDecoder, codes: Tensor, whole: Tensor
) -> None:
    changed = codes[:1].clone()
    changed[:, 10] = (changed[:, 10] + 1) % 256
    samples = codec.decode(changed, [0], codec.new_state(1))
    assert_same(samples[:, : 10 * FRAME], whole[:1, : 10 * FRAME])
    assert (samples[0, 10 * FRAME :] - whole[0, 10 * FRAME :]).abs().max() > 1e-3


def test_state_is_in_the_arena_only(codec: CodecDecoder, codes: Tensor, whole: Tensor) -> None:
    """Two states of one decoder do not meet."""
    one, other = codec.new_state(1), codec.new_state(1)
    found = []
    for frame in range(FRAMES):
        found.append(codec.decode(codes[:1, frame : frame + 1], [0], one))
        codec.decode(codes[1:2, frame : frame + 1], [0], other)
    assert_same(torch.cat(found, 1), whole[:1])


def test_without_packed_weights_it_is_the_same(
    monkeypatch: pytest.MonkeyPatch, load_codec: Callable[[], CodecDecoder], codes: Tensor
) -> None:
    """The path of devices and builds without oneDNN; other kernels round otherwise."""
    wanted = in_pieces(load_codec(), codes[:1], [0], load_codec().new_state(1), [3])
    for module in ("linear", "codec_layers"):
        monkeypatch.setattr(f"realtime_tts.model.{module}.packing_available", lambda: False)
    found = in_pieces(load_codec(), codes[:1], [0], load_codec().new_state(1), [1])
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.fixture
def load_codec(model: SpeechModel) -> Callable[[], CodecDecoder]:
    def load() -> CodecDecoder:
        device = torch.device("cpu")
        assert model.folder is not None
        with Weights(
            model.folder / "speech_tokenizer",
            device=device,
            dtype=torch.float32,
            ignored=("encoder.",),
        ) as weights:
            return CodecDecoder(model.config.codec, weights, device)

    return load
