"""Turn the teacher's speech into what talker and predictor learn from: codes, tokens, labels.

    python -m tools.demo_voice.codes --follow

Works beside the production of speech and beside
training: a coded shard appears under its final name when complete.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from realtime_tts.text.pretokens import SPLIT
from tools.demo_voice.codec_model import Codec
from tools.demo_voice.codec_trainer import FRAME_SAMPLES, LABELS
from tools.demo_voice.settings import CODEC, IM_START
from tools.demo_voice.speech import SHARD_SECONDS, Shard, store_arrays
from tools.demo_voice.teacher import LABEL_SAMPLES

_GAP = 4
"""Silent frames between utterances while encoding, more than the encoder sees."""

Encode = Callable[[str], tuple[list[int], list[tuple[int, int]]]]
"""Text to token ids and their character offsets."""


@dataclass(frozen=True, slots=True, eq=False)
class CodedShard:
    """Entries one after the other: an entry is an utterance.

    codes [F, 16] uint8, phones [F, 4] uint8, pitch [F, 4] float16 and words [F] int16 by frame;
    tokens and token_words
    [T] int16 by text token; entries [E, 5] int32: first frame, first token, voice, frames, tokens.
    """

    codes: np.ndarray
    phones: np.ndarray
    pitch: np.ndarray
    words: np.ndarray
    tokens: np.ndarray
    token_words: np.ndarray
    entries: np.ndarray

    def save(self, path: Path) -> None:
        store_arrays(path, asdict(self))

    @classmethod
    def load(cls, path: Path) -> Self:
        with np.load(path) as held:
            return cls(**{name: held[name] for name in held.files})


class Coder:
    def __init__(self, codec: Codec, encode: Encode, device: torch.device) -> None:
        self._codec, self._encode, self._device = codec, encode, device

    def code(self, shard: Shard) -> CodedShard:
        texts = [word_tokens(self._encode, _typeset(text)) for text in shard.texts]
        counts = np.array([len(tokens) for tokens, _ in texts])
        places = np.cumsum(counts) - counts
        codes, phones, pitch, words, frames = self._stream(shard)
        begins = np.cumsum(frames) - frames
        entries = np.stack((begins, places, shard.voices, frames, counts), 1)
        return CodedShard(
            codes=codes,
            phones=phones,
            pitch=pitch,
            words=words,
            tokens=np.concatenate([np.array(tokens, np.int16) for tokens, _ in texts]),
            token_words=np.concatenate([np.array(words, np.int16) for _, words in texts]),
            entries=entries.astype(np.int32),
        )

    def _stream(self, shard: Shard) -> tuple[np.ndarray, ...]:
        """Codes, phones, pitch and words of all frames of all utterances, and the utterances'
        frames."""
        labels = shard.lengths // LABEL_SAMPLES
        frames = -(-labels // LABELS)
        first = np.cumsum(frames + _GAP) - frames - _GAP
        total = int(first[-1] + frames[-1]) + _GAP
        # Where each label of the shard goes in the stream.
        begins = np.cumsum(labels) - labels
        goes = np.repeat(first * LABELS - begins, labels) + np.arange(labels.sum())
        phones = np.zeros(total * LABELS, np.uint8)
        words = np.full(total * LABELS, -1, np.int16)
        samples = np.zeros((total * LABELS, LABEL_SAMPLES), np.int16)
        pitch = np.zeros(total * LABELS, np.float16)
        phones[goes], words[goes], pitch[goes] = shard.phones, shard.words, shard.pitch
        samples[goes] = shard.samples.reshape(-1, LABEL_SAMPLES)
        codes = self._codes(samples.reshape(-1))
        own = np.repeat(first - (np.cumsum(frames) - frames), frames) + np.arange(frames.sum())
        by_frame = words.reshape(-1, LABELS)
        middle = np.where(by_frame[:, 2] >= 0, by_frame[:, 2], by_frame.max(1))
        by_label = (part.reshape(-1, LABELS)[own] for part in (phones, pitch))
        return (codes[own], *by_label, middle[own], frames)

    def _codes(self, samples: np.ndarray) -> np.ndarray:
        assert len(samples) % FRAME_SAMPLES == 0
        sound = torch.from_numpy(samples).to(self._device).float() / 32768
        half = self._device.type == "cuda"
        with torch.autocast(self._device.type, torch.bfloat16, enabled=half):
            codes = self._codec.encode(sound[None])[0]
        return codes.to(torch.uint8).cpu().numpy()


def word_tokens(encode: Encode, text: str) -> tuple[list[int], list[int]]:
    """Token ids, and the whitespace-separated word that each of them lies in."""
    numbers, places = encode(text)
    word_at, word, before = [], -1, " "
    for character in text:
        word += before.isspace() and not character.isspace()
        word_at.append(word)
        before = character
    return numbers, [word_at[end - 1] for _, end in places]


def _typeset(text: str) -> str:
    """Some texts with the marks of print, which language models like and the teacher, who is
    given ASCII, does not know. The words stay where they are."""
    if zlib.crc32(text.encode()) % 5:
        return text
    text = re.sub(r'"(?=\w)', "\u201c", text).replace('"', "\u201d")
    return text.replace("'", "\u2019").replace(" - ", " \u2014 ").replace(" -- ", " \u2014 ")


def read_tokenizer(folder: Path) -> Tokenizer:
    """The library's tokenizer of a Qwen2 folder; unlike ours it tells character offsets."""
    lines = (folder / "merges.txt").read_text("utf-8").splitlines()[1:]
    merges = [(first, second) for first, second in (line.split(" ") for line in lines)]
    vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [SPLIT, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return tokenizer


def prompt_start(tokenizer: Tokenizer) -> list[int]:
    """The tokens that every prompt begins with."""
    return [IM_START, *tokenizer.encode("assistant\n").ids]


def encoder(tokenizer: Tokenizer) -> Encode:
    def encode(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = tokenizer.encode(text)
        return encoding.ids, encoding.offsets

    return encode


def load_codec(path: Path, device: torch.device) -> Codec:
    """The trained codec, its decoder averaged over the last steps."""
    codec = Codec(CODEC).to(device)
    held = torch.load(path, map_location=device, weights_only=True)
    codec.load_state_dict(held["parts"][0])
    codec.decoder.load_state_dict(held["average"])
    return codec.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--speech", type=Path, default=folder / "speech")
    parser.add_argument("--codec", type=Path, default=folder / "codec.pt")
    parser.add_argument("--tokenizer", type=Path, default=folder / "tokenizer")
    parser.add_argument("--out", type=Path, default=folder / "codes")
    parser.add_argument("--follow", action="store_true", help="go on as speech is made")
    parser.add_argument("--consume", action="store_true", help="delete speech once coded")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device = torch.device(given.device)
    tokenizer = read_tokenizer(given.tokenizer)
    coder = Coder(load_codec(given.codec, device), encoder(tokenizer), device)
    begun, done = time.monotonic(), 0
    while True:
        made = sorted(given.speech.glob("speech-*.npz"))
        fresh = [path for path in made if not (given.out / path.name).exists()]
        for path in fresh:
            coder.code(Shard.load(path)).save(given.out / path.name)
            done += 1
            if given.consume:
                path.unlink()
        hours = done * SHARD_SECONDS / 3600
        print(f"{time.monotonic() - begun:6.0f} s: {hours:.1f} h coded", flush=True)
        if not given.follow:
            break
        time.sleep(1)


if __name__ == "__main__":
    main()
