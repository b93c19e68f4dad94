"""Find the attention heads of a talker that follow the text being spoken.

    python -m tools.word_times.heads --checkpoint FOLDER            # prints the best heads
    python -m tools.word_times.heads --checkpoint FOLDER --write    # and puts them into config.json

The checkpoint speaks some texts with all of the text in the prompt: in the streaming layout, a head
that attends to the newest token would move through the text as well. For each frame, the token that
each head of each layer attends to most is recorded. A head that follows the text moves through all
of it, from the beginning to the end, and never back: its score is the share of frames on the
longest path that does not go back, times the share of the text that this path does not skip. The
config gets the best head, and those nearly as good that do not lower its score.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from realtime_tts import demo_voice
from realtime_tts.model import PromptSpec, SpeechModel, find_checkpoint, load_model
from realtime_tts.text.progress import NEAR
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tools.demo_voice.recognise import read_texts

_TEXTS = Path(__file__).parent.parent / "demo_voice" / "held_out_harder.txt"
_SHOWN = 10
_LEAST = 0.85
"""Score below which a head does not follow the text."""
_ALIKE = 0.95
"""Share of the best score below which a head is not added, because it would only add noise."""

Head = tuple[int, int]
"""Layer of a head, and its number in the layer."""


@torch.inference_mode()
def weights_of(
    model: SpeechModel, tokenizer: Qwen2Tokenizer, spec: PromptSpec, text: str, seed: int
) -> Tensor:
    """Speak a text; return each head's attention to its tokens, for each frame, with a sum of 1
    over the text: [frames, layers, heads, tokens]."""
    prompts, state = model.prompt_builder(tokenizer.encode), model.new_state(slots=1)
    ids = tokenizer.encode(text)
    shape = model.config.talker.transformer
    group, first = shape.heads // shape.kv_heads, prompts.text_position(spec)
    state.begin(0, model.default_sampling, seed)
    inputs = prompts.prompt(spec, ids, "full_text").inputs
    hidden = model.talker.prefill(inputs, 0, state.kv)[None]
    frames: list[Tensor] = []

    def see(layer: int, query: Tensor) -> None:
        keys = [state.kv.keys(layer, 0, kv, first, len(ids)) for kv in range(shape.kv_heads)]
        asked = query[0].view(shape.kv_heads, group, -1) * shape.head_dim**-0.5
        scores = asked @ torch.stack(keys).transpose(1, 2)
        frames.append(scores.flatten(0, 1).float().softmax(-1))

    while len(frames) < model.max_frames * shape.layers:
        frame = model.frame(hidden, [0], state)
        if frame.ended[0] or frame.failed[0]:
            break
        inputs = frame.embedding + prompts.tts_pad
        hidden = model.talker.decode(inputs, [0], state.kv, see)
    return torch.stack(frames).view(-1, shape.layers, shape.heads, len(ids))


def follows(tokens: Sequence[int], length: int) -> float:
    """Return, from 0 to 1, how well the tokens of all frames move through `length` tokens."""
    best: list[int] = []  # the last token of the lowest path of each length
    before: list[int | None] = []
    ends: list[int] = []
    for index, token in enumerate(tokens):
        at = bisect_right(best, token)
        before.append(ends[at - 1] if at else None)
        best[at:] = [token]
        ends[at:] = [index]
    path: list[int] = []
    step: int | None = ends[-1] if ends else None
    while step is not None:
        path.append(tokens[step])
        step = before[step]
    places = [-1, *reversed(path), length]
    leapt = sum(max(0, b - a - NEAR) for a, b in zip(places, places[1:], strict=False))
    return len(path) / max(1, len(tokens)) * max(0.0, 1 - leapt / length)


def score(spoken: Sequence[Tensor], heads: Sequence[Head]) -> float:
    """Return the score of these heads' summed attention, as the mean over all texts."""
    found = []
    for weights in spoken:
        summed = sum((weights[:, layer, head] for layer, head in heads), torch.zeros(()))
        found.append(follows(summed.argmax(-1).tolist(), weights.shape[-1]))
    return sum(found) / len(found)


def best_heads(spoken: Sequence[Tensor]) -> tuple[list[Head], list[tuple[float, Head]]]:
    """Return the heads for the config (none if no head follows the text), and all heads with their
    scores, best first."""
    _, layers, count, _ = spoken[0].shape
    every = [(layer, head) for layer in range(layers) for head in range(count)]
    ranked = sorted(((score(spoken, [head]), head) for head in every), reverse=True)
    if ranked[0][0] < _LEAST:
        return [], ranked
    chosen, reached = [ranked[0][1]], ranked[0][0]
    for alone, head in ranked[1:]:
        alike = alone >= _ALIKE * ranked[0][0]
        if alike and (together := score(spoken, [*chosen, head])) >= reached:
            chosen, reached = [*chosen, head], together
    return sorted(chosen), ranked


def write(folder: Path, heads: Sequence[Head]) -> None:
    """Write the heads into the checkpoint's config.json, and keep the rest of it."""
    path = folder / "config.json"
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    config["alignment_heads"] = [list(head) for head in heads]
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--checkpoint", type=Path, default=demo_voice.FOLDER, help="default: the embedded one")
    add("--texts", type=Path, default=_TEXTS, help="one a line, as the checkpoint reads them best")
    add("--limit", type=int, default=12, help="only the first texts")
    add("--voice", help="default: the checkpoint's first")
    add("--language")
    add("--device", default="cpu")
    add("--write", action="store_true", help="put the field into config.json")
    given = parser.parse_args()
    folder = find_checkpoint(given.checkpoint)
    model, tokenizer = load_model(folder, device=given.device), Qwen2Tokenizer.from_folder(folder)
    voice = given.voice or next(iter(model.config.speakers), None)
    spec = PromptSpec(speaker=voice, language=given.language)
    texts = [line.partition("\t")[0] for line in read_texts(given.texts)][: given.limit]
    spoken = [weights_of(model, tokenizer, spec, text, seed) for seed, text in enumerate(texts)]
    heads, ranked = best_heads(spoken)
    print(f"{len(texts)} texts, {sum(map(len, spoken))} frames")
    for each, (layer, head) in ranked[:_SHOWN]:
        print(f"layer {layer} head {head}: {each:.3f}")
    if not heads:
        raise SystemExit(f"no head follows the text (score {_LEAST} or more): nothing to write")
    print(f'"alignment_heads": {json.dumps(heads)}  {score(spoken, heads):.3f} together')
    if given.write:
        write(folder, heads)


if __name__ == "__main__":
    main()
