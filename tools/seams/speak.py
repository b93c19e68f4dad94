"""Speaks every text with every voice in the given ways, and stores the sound.

    python -m tools.seams.speak --ways whole new rewritten

This writes build/seams/WAY/NNN_voice.wav and spoken.json beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from realtime_tts import demo_voice
from realtime_tts.model import load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tools.demo_voice.recognise import Recording
from tools.seams.speaker import SAMPLE_RATE, Request, Speaker
from tools.seams.texts import pieced_texts
from tools.seams.ways import WAYS, Way

OUT = Path("build/seams")
VOICES = ("ava", "ray")


@dataclass(frozen=True, slots=True)
class Turn:
    """A request that was spoken. `kind` comes from `PiecedText`, the other fields from `Spoken`."""

    wav: str
    voice: str
    kind: str
    pieces: tuple[str, ...]
    ends: tuple[int, ...]
    ended: tuple[bool, ...]
    tokens: tuple[int, ...]


def folder_of(way: str, out: Path) -> Path:
    return out / way.replace(", ", "-").replace(" ", "_")


def read_turns(way: str, out: Path) -> list[Turn]:
    """Read what `speak` wrote. Raises FileNotFoundError if it wrote nothing."""
    with (folder_of(way, out) / "spoken.json").open(encoding="utf-8") as file:
        return [Turn(**turn) for turn in json.load(file)]


def speak(speaker: Speaker, way: Way, out: Path, limit: int | None = None) -> None:
    """Speak all texts, or every n-th so that about `limit` are left, with all voices."""
    texts = list(enumerate(pieced_texts()))
    texts = texts[:: max(1, len(texts) // limit)] if limit else texts
    asked = [(number, text, voice) for number, text in texts for voice in VOICES]
    requests = [Request(text.pieces, voice, number + 1, way) for number, text, voice in asked]
    folder = folder_of(way.name, out)
    folder.mkdir(parents=True, exist_ok=True)
    turns = []
    for (number, text, voice), spoken in zip(asked, speaker.speak(requests), strict=True):
        name = f"{number:03d}_{voice}.wav"
        Recording(spoken.samples, SAMPLE_RATE).write(folder / name)
        ends, ended, tokens = spoken.ends, spoken.ended, spoken.tokens
        turns.append(Turn(name, voice, text.kind, text.pieces, ends, ended, tokens))
    written = json.dumps([asdict(turn) for turn in turns], indent=1)
    (folder / "spoken.json").write_text(written + "\n", encoding="utf-8")


def first_sounds(speaker: Speaker, way: Way) -> str:
    """Return a line with the medians of `Speaker.first_sound` over ten texts."""
    requests = [
        Request(text.pieces, VOICES[seed % len(VOICES)], seed, way)
        for seed, text in enumerate(pieced_texts()[:10], 1)
    ]
    positions, seconds = zip(*(speaker.first_sound(each) for each in requests), strict=True)
    return f"{way.name}: {median(positions):.0f} positions, {1000 * median(seconds):.1f} ms"


def load_speaker() -> Speaker:
    torch.set_num_threads(1)
    model = load_model(demo_voice.FOLDER)
    return Speaker(model, Qwen2Tokenizer.from_folder(demo_voice.FOLDER))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--first-sound", action="store_true", help="only how soon a seam is over")
    parser.add_argument("--limit", type=int, help="about so many texts, of both kinds")
    given = parser.parse_args()
    speaker = load_speaker()
    for name in given.ways:
        if given.first_sound:
            print(first_sounds(speaker, WAYS[name]), flush=True)
            continue
        began = time.monotonic()
        speak(speaker, WAYS[name], given.out, given.limit)
        sys.stderr.write(f"{name}: {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main()
