"""The codec for GPUs gives the samples of the one for CPUs, whoever shares its calls.

On the CPU the reference implementations run; `pytest -m gpu` runs the same with the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from realtime_tts.model import ReferenceSound, SpeechModel, codec_gemm_layers
from realtime_tts.model.codec_gemm import GemmCodecDecoder
from realtime_tts.model.codec_gemm_state import GemmCodecState
from realtime_tts.model.weights import Weights

FRAME = 1920
FRAMES = 18  # more than two windows of this checkpoint's attention
STREAMS = 4

# A direct form of no block, of the last two and of all that can have one; and of all, with cuBLAS
# from so many outputs on.
FORMS = [(0, 288), (12, 288), (192, 288), (192, 0)]


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)


@pytest.fixture(scope="module", params=FORMS)
def codec(
    request: pytest.FixtureRequest, model: SpeechModel, device: torch.device
) -> GemmCodecDecoder:
    direct, outputs = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec_gemm_layers, "_DIRECT_OUTPUTS", outputs)
        return decoder(model, device, direct_channels=direct)


def decoder(
    model: SpeechModel,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    *,
    direct_channels: int = 192,
) -> GemmCodecDecoder:
    assert model.folder is not None
    folder, config = model.folder / "speech_tokenizer", model.config.codec
    with Weights(folder, device=device, dtype=torch.float32, ignored=("encoder.",)) as weights:
        made = GemmCodecDecoder(config, weights, device, dtype, direct_channels=direct_channels)
        weights.finish()
    return made


@pytest.fixture(scope="module")
def codes(model: SpeechModel, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    size = model.config.codec.codebook_size
    return torch.randint(0, size, (STREAMS, FRAMES, 16), generator=generator).to(device)


@pytest.fixture(scope="module")
def wanted(model: SpeechModel, codes: Tensor) -> Tensor:
    """Every stream decoded by the CPU's codec, [4, FRAMES * 1920]."""
    state = model.codec.new_state(STREAMS)
    return model.codec.decode(codes.cpu(), list(range(STREAMS)), state)


def in_pieces(
    codec: GemmCodecDecoder,
    codes: Tensor,
    slots: list[int],
    state: GemmCodecState,
    sizes: list[int],
) -> Tensor:
    pieces, at = [], 0
    rows = torch.tensor(slots, device=codes.device)
    for size in cycle(sizes):
        pieces.append(codec.decode(codes[:, at : at + size], rows, state))
        at += size
        if at >= codes.shape[1]:
            return torch.cat(pieces, 1)
    raise AssertionError("unreachable")


def assert_same(found: Tensor, wanted: Tensor) -> None:
    """The same but for the rounding of other kernels: a hundred thousandth of the sound, and
    nowhere a ten thousandth of full scale."""
    assert found.shape == wanted.shape and found.dtype is torch.float32
    found = found.cpu()
    assert (found - wanted).norm() <= 1e-5 * wanted.norm()
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("sizes", [[1], [2], [4], [8], [1, 2, 4, 8], [5, 1, 7, 3]])
def test_frames_in_any_pieces_give_the_samples_of_the_cpus_codec(
    sizes: list[int], codec: GemmCodecDecoder, codes: Tensor, wanted: Tensor
) -> None:
    state = codec.new_slot_state(3)
    assert_same(in_pieces(codec, codes[:2], [2, 0], state, sizes)[:, : FRAMES * FRAME], wanted[:2])
    assert state.frames[:3].tolist() == [FRAMES, 0, FRAMES]


@pytest.mark.parametrize("direct_channels", [0, 192])
def test_it_decodes_like_the_official_causal_pass(
    direct_channels: int, model: SpeechModel, device: torch.device, parity: Path
) -> None:
    """All 26 seconds, in both forms that a block can have; the mixed ones are compared with the
    CPU's codec above."""
    with np.load(parity / "tiny-custom_voice.npz") as stored:
        codes, samples = stored["codec/codes"], stored["codec/wav_full"]
    codec = decoder(model, device, direct_channels=direct_channels)
    given = torch.from_numpy(codes).long()[None].to(device)
    found = in_pieces(codec, given, [0], codec.new_slot_state(1), [8, 4, 2, 1])
    np.testing.assert_allclose(found[0].cpu().numpy(), samples, atol=1e-4, rtol=0)


def test_a_saved_stream_goes_on_in_any_slot(
    codec: GemmCodecDecoder, codes: Tensor, wanted: Tensor
) -> None:
    """Saved on either side of its taps, restored over another stream's, and not written to."""
    one = codec.new_slot_state(1)
    in_pieces(codec, codes[:1, :12], [0], one, [8, 4])
    even = one.save(0)
    in_pieces(codec, codes[:1, 12:13], [0], one, [1])
    odd = one.save(0)
    state = codec.new_slot_state(3)
    for slots in ([2, 0], [0, 1]):
        in_pieces(codec, codes[2:4], slots, state, [5])
        state.restore(slots[0], even)
        found = in_pieces(codec, codes[[0, 3]][:, 12:14], [slots[0], 2 - slots[0] or 1], state, [2])
        assert_same(found[:1], wanted[:1, 12 * FRAME : 14 * FRAME])
        state.restore(slots[1], odd)
        found = in_pieces(codec, codes[:1, 13:], [slots[1]], state, [8, 2, 1])
        assert_same(found, wanted[:1, 13 * FRAME :])


def test_rows_depend_on_neither_neighbours_nor_padding(
    codec: GemmCodecDecoder, codes: Tensor, wanted: Tensor
) -> None:
    """Streams begin at different times, share some calls and not others, in shuffled slots."""
    state = codec.new_slot_state(9)
    slots, fed = [7, 2, 0, 5], [0] * STREAMS
    made: list[list[Tensor]] = [[] for _ in slots]
    noise = torch.randint(0, 99, (3, 8, 16), device=codes.device)
    for step in range(200):
        size = 1 + step % 3
        rows = [
            row
            for row in range(STREAMS)
            if step >= 3 * row and (step + row) % 4 and fed[row] + size <= FRAMES
        ]
        if rows:
            padding = step % 3
            pieces = [codes[row, fed[row] : fed[row] + size] for row in rows]
            piece = torch.stack([*pieces, *noise[:padding, :size]])
            where = [slots[row] for row in rows] + [state.slots] * padding
            samples = codec.decode(piece, torch.tensor(where, device=codes.device), state)
            for at, row in enumerate(rows):
                made[row].append(samples[at])
                fed[row] += size
    assert fed == [FRAMES] * STREAMS
    assert_same(torch.stack([torch.cat(samples) for samples in made]), wanted)


def test_a_reset_slot_starts_anew_and_the_others_go_on(
    codec: GemmCodecDecoder, codes: Tensor, wanted: Tensor
) -> None:
    state, half = codec.new_slot_state(3), FRAMES // 2
    in_pieces(codec, codes[:3, :half], [0, 1, 2], state, [1, 2])
    state.ring[1] = torch.nan  # a failed row may leave anything behind
    state.taps[1] = torch.nan
    state.reset(torch.tensor([1], device=codes.device))
    rest = in_pieces(codec, codes[[0, 2], half:], [0, 2], state, [4])
    assert_same(rest, wanted[[0, 2], half * FRAME :])
    assert_same(in_pieces(codec, codes[3:], [1], state, [8]), wanted[3:])


def test_two_states_of_one_decoder_do_not_meet(
    codec: GemmCodecDecoder, codes: Tensor, wanted: Tensor
) -> None:
    one, other = codec.new_slot_state(1), codec.new_slot_state(1)
    row, found = torch.tensor([0], device=codes.device), []
    for at in range(0, FRAMES, 4):
        found.append(codec.decode(codes[:1, at : at + 4], row, one))
        codec.decode(codes[1:2, at : at + 4], row, other)
    assert_same(torch.cat(found, 1), wanted[:1])


# These weights are random, and residual units of random weights make rounding errors larger.
@pytest.mark.parametrize(("dtype", "error"), [(torch.float16, 0.02), (torch.bfloat16, 0.15)])
def test_narrower_types_are_near(
    dtype: torch.dtype, error: float, model: SpeechModel, codes: Tensor, wanted: Tensor
) -> None:
    codec = decoder(model, codes.device, dtype)
    found = in_pieces(codec, codes[:2], [0, 1], codec.new_slot_state(2), [1, 2, 4, 8, 8, 1])
    assert found.dtype is torch.float32
    assert (found.cpu() - wanted[:2]).norm() < error * wanted[:2].norm()


def test_more_frames_than_the_ring_has_room_for_are_refused(
    codec: GemmCodecDecoder, codes: Tensor
) -> None:
    row = torch.tensor([0], device=codes.device)
    with pytest.raises(AssertionError, match="9 frames in a call, expected 1 to 8"):
        codec.decode(codes[:1, :9], row, codec.new_slot_state(1))


@pytest.mark.gpu
@pytest.mark.parametrize("frames", [1, 4])
def test_a_captured_graph_goes_on_where_the_last_call_ended(
    frames: int, model: SpeechModel, wanted: Tensor, codes: Tensor
) -> None:
    """Only for the device: there are no graphs on a CPU."""
    codec = decoder(model, torch.device("cuda"))
    state = codec.new_slot_state(3)
    given = torch.zeros(4, frames, 16, dtype=torch.long, device="cuda")
    slots = torch.full((4,), state.slots, device="cuda")
    graph = capture(lambda: codec.decode(given, slots, state))
    slots[:3] = torch.tensor([2, 0, 1])
    found = []
    whole = FRAMES // frames * frames
    for at in range(0, whole, frames):
        given[:3] = codes[:3, at : at + frames].cuda()
        found.append(graph()[:3].clone())
    assert_same(torch.cat(found, 1), wanted[:3, : whole * FRAME])


def capture(call: Callable[[], Tensor]) -> Callable[[], Tensor]:
    call()  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()

    def replay() -> Tensor:
        graph.replay()
        return out

    return replay


@pytest.mark.parametrize("spoken", [1, 9, 70])
def test_the_codec_goes_on_behind_frames_that_were_spoken_elsewhere(
    spoken: int, codec: GemmCodecDecoder, model: SpeechModel, device: torch.device
) -> None:
    """More than it knows of, in a slot where somebody else was before."""
    generator = torch.Generator().manual_seed(spoken)
    said = torch.randint(
        0, model.config.codec.codebook_size, (spoken + 12, 16), generator=generator
    )
    whole = model.codec.decode(said[None], [0], model.codec.new_state(1))
    said, state = said.to(device), codec.new_slot_state(2)
    slot = torch.tensor([1], device=device)
    codec.decode(said[None, -5:], slot, state)
    state.reset(slot)
    ReferenceSound(codec, state).begin(1, None, said[:spoken])
    found = [
        codec.decode(said[None, at : at + 4], slot, state)
        for at in (spoken, spoken + 4, spoken + 8)
    ]
    assert_same(torch.cat(found, 1), whole[:, spoken * FRAME :])
