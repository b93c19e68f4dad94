"""Resumptions as no server has given them: changed, cut, repeated, out of order, huge, made up."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from random import Random
from typing import Any

import msgspec
import numpy as np

from tests.server.resuming import Kept

NUMBERS: list[Any] = [
    0,
    1,
    -1,
    7,
    255,
    1_920,
    2**15,
    2**31,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**64 - 1,
    -(2**63),
    0.5,
    1e9,
    1e300,
    float("nan"),
    float("inf"),
    None,
    True,
    "",
    "full_text",
    b"\xff",
    [],
    [0],
]
MOST_FRAMES = 2_048  # of a turn, by the default limits


def changed(chance: Random, value: Any) -> Any:
    """The same tree with one leaf that is another, lists perhaps longer or shorter."""
    if not isinstance(value, list) or not value or chance.random() < 0.1:
        kinds = [number for number in NUMBERS if type(number) is type(value)]
        return chance.choice(kinds if kinds and chance.random() < 0.7 else NUMBERS)
    at, others = chance.randrange(len(value)), list(value)
    match chance.randrange(8):
        case 0:
            return others[:at]
        case 1:
            return others + [others[at]] * chance.choice([1, 50, 900])
        case _:
            others[at] = changed(chance, others[at])
            return others


def whole(data: bytes) -> Any:
    """What is packed there; None if nothing that can be read."""
    try:
        return msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def packed(chance: Random, text: str) -> str:
    """A `part` or a `state` that was changed."""
    data = b64decode(text)
    tree = whole(data)
    if tree is not None and chance.random() < 0.85:
        tree = changed(chance, tree)
        while chance.random() < 0.3:
            tree = changed(chance, tree)
        data = msgspec.msgpack.encode(tree)
    else:
        octets = bytearray(data or b"\x00")
        octets[chance.randrange(len(octets))] = chance.randrange(256)
        data = bytes(octets[: chance.randrange(len(octets) + 1)])
    return b64encode(data).decode()


def codes(chance: Random, kept: Kept) -> list[str]:
    """Codes, and tokens perhaps, of some frames."""
    told = b"".join(map(b64decode, kept.codes))
    match chance.randrange(7):
        case 0:
            told = told[: chance.randrange(len(told) + 1)]
        case 1:
            told *= chance.choice([2, 3, 40])
        case 2:
            told = chance.randbytes(chance.choice([1, 31, 32, 34, 544, 3_200]))
        case 3 | 4:
            frames, groups = chance.choice([1, 9, 200, MOST_FRAMES]), chance.choice([16, 17])
            seed = np.random.default_rng(chance.randrange(2**32))
            most = chance.choice([1, 2_048, 2_049, 32_767])
            told = seed.integers(0, most, (frames, groups)).astype("<i2").tobytes()
        case 5:
            numbers = np.frombuffer(told[: len(told) // 2 * 2], "<i2").copy()
            if numbers.size:
                numbers[chance.randrange(numbers.size)] = chance.choice(
                    [-1, -32_768, 2_048, 32_767]
                )
            told = numbers.tobytes()
    size = chance.choice([3, 96, 24_000]) if len(told) < 4_000 else 24_000
    return [b64encode(told[at : at + size]).decode() for at in range(0, len(told), size)]


def frames_that_fit(chance: Random, kept: Kept) -> list[str]:
    """Made-up codes that look right, and `kept.state` says that they came to as much sound."""
    frames = chance.choice([1, 30, 500, MOST_FRAMES - 1, MOST_FRAMES])
    state = msgspec.msgpack.decode(b64decode(kept.state))
    part = msgspec.msgpack.decode(b64decode(kept.part))
    state[0], state[4] = frames * 1_920, chance.choice(["streaming", "full_text", ""])
    state[1] = chance.choice([0, state[0], 2**53])
    groups = 17 if chance.random() < 0.5 else 16
    state[8] = groups == 17
    kept.state = b64encode(msgspec.msgpack.encode(state)).decode()
    kept.samples = part[2] + round(part[3] * 24_000) + state[0]
    seed = np.random.default_rng(chance.randrange(2**32))
    made = seed.integers(0, 2_048, (frames, groups)).astype("<i2")
    if groups == 17:
        made[:, 16] = seed.integers(-32_768, 32_768, frames)
    told = made.tobytes()
    return [b64encode(told[at : at + 24_000]).decode() for at in range(0, len(told), 24_000)]


def resumption(chance: Random, kept: Kept, turn_id: str) -> list[dict[str, Any]]:
    """The messages before the text, with something wrong with them."""
    one = Kept(turn_id, kept.samples, kept.text_chars, kept.part, kept.state, list(kept.codes))
    for _ in range(chance.randrange(1, 3)):
        match chance.randrange(7):
            case 0:
                one.part = packed(chance, one.part)
            case 1 | 2:
                one.state = packed(chance, one.state)
            case 3:
                one.codes = codes(chance, one)
            case 4:
                one.samples = chance.choice([0, 1, one.samples + 1, one.samples * 30, 2**53])
            case 5:
                one.text_chars = chance.choice([0, 5, 10**6, 2**53])
            case _:
                one.part, one.state = kept.part, kept.state
                one.codes = frames_that_fit(chance, one)
    if not one.state:
        return []
    messages = one.resume()
    messages[:1] = [
        {"type": "turn.codes", "turn_id": turn_id, "codes": [each]} for each in one.codes
    ]
    resume = messages[-1]
    if chance.random() < 0.2:
        name = chance.choice(["samples", "text_chars", "words_chars", "part", "state"])
        resume[name] = changed(chance, resume.get(name))
    match chance.randrange(8):
        case 0:
            chance.shuffle(messages)
        case 1:
            messages *= 2
        case 2:
            messages.insert(0, {**messages[0], "turn_id": "another"})
    return [as_json(message) for message in messages]


def conversation(chance: Random, kept: list[Kept], text: str) -> list[str]:
    """A session with such resumptions: turns before them, in between and behind, text in pieces or
    less of it than there was, flushes, interrupts, and frames that are cut."""
    said: list[dict[str, Any]] = []
    for number in range(chance.randrange(1, 4)):
        turn_id = chance.choice(["a", "b", f"t{number}"])
        if chance.random() < 0.3:
            said.append({"type": "text", "text": text[:20], "turn_id": f"before-{number}"})
        said += resumption(chance, chance.choice(kept), turn_id)
        whole, size = text[: chance.choice([0, 3, 30, 1_000])], chance.choice([4, 1_000])
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        said += [{"type": "text", "text": piece, "turn_id": turn_id} for piece in pieces]
        odd: list[dict[str, Any]] = [
            {"type": "flush", "turn_id": turn_id},
            {"type": "interrupt"},
            {"type": "interrupt", "turn_id": turn_id, "played_samples": 2**53},
            {"type": "played", "turn_id": turn_id, "played_samples": 2**53},
            {"type": "session.start", "voice": "bass"},
            {"type": "session.start", "resume": chance.choice(["on", "off"])},
        ]
        while chance.random() < 0.4:
            said.insert(chance.randrange(len(said) + 1), chance.choice(odd))
        said.append({"type": "turn.end", "turn_id": turn_id})
    raw = [json.dumps(message) for message in said]
    if chance.random() < 0.1:
        at = chance.randrange(len(raw))
        raw[at] = raw[at][: chance.randrange(len(raw[at]))]
    return raw


def as_json(message: dict[str, Any]) -> dict[str, Any]:
    """With bytes as the text that somebody may make of them."""
    return {
        name: each.decode("latin-1") if isinstance(each, bytes) else each
        for name, each in message.items()
    }
