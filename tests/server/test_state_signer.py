"""What a client keeps of a turn is signed where there are keys: it goes on only as it was."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.server.state_signer import StateSigner
from realtime_tts.server.tokens import Tokens
from tests.server.resuming import Kept, hear, spoken, whole
from tests.server.speaking import speaking
from tests.server.talking import of_type, sound_of

TEXT = "The tide is coming in. Good morning to you, and to all who are with you!"
ON = "?resume=on&lead_ms=30000"
KEYS = ("a-long-key", "another-key")


def test_a_state_is_known_again_behind_its_part_and_codes_alone() -> None:
    told = [(b"part", b"s1", b""), (b"", b"s2", b"codes"), (b"", b"", b"more"), (b"", b"s3", b"x")]
    signer = StateSigner(b"secret")
    first, second, none, third = [signer.sign(*each) for each in told]
    assert none == b"" and len(second) == len(b"s2") + 16
    for part, state, codes, bare in [
        (b"part", first, b"", b"s1"),
        (b"part", second, b"codes", b"s2"),
        (b"part", third, b"codesmorex", b"s3"),
        (b"part", third, b"codesmore", None),
        (b"part", second, b"codesmorex", None),
        (b"par", second, b"tcodes", None),
        (b"partc", second, b"odes", None),
        (b"part", b"s4" + third[2:], b"codesmorex", None),
        (b"part", b"", b"", None),
        (b"part", b"s3", b"codesmorex", None),
    ]:
        assert StateSigner(b"secret").verify(part, state, codes) == bare
    assert StateSigner(b"secret2").verify(b"part", first, b"") is None


def test_who_goes_on_signs_what_follows_as_if_nothing_had_happened() -> None:
    signer, other = StateSigner(b"secret"), StateSigner(b"secret")
    state = signer.sign(b"part", b"state", b"one")
    assert other.verify(b"part", state, b"one") == b"state"
    assert other.sign(b"", b"next", b"two") == signer.sign(b"", b"next", b"two")


def test_without_a_secret_nothing_is_signed() -> None:
    assert StateSigner(b"").sign(b"part", b"state", b"codes") == b"state"
    assert StateSigner(b"").verify(b"part", b"state", b"codes") == b"state"


def other_codes(kept: Kept) -> None:
    codes = bytearray(b64decode(kept.codes[-1]))
    codes[0] ^= 1
    kept.codes[-1] = b64encode(codes).decode()


def other_state(kept: Kept) -> None:
    state = bytearray(b64decode(kept.state))
    state[-17] ^= 1  # the last byte before the signature
    kept.state = b64encode(state).decode()


CHANGES: list[tuple[str, Callable[[Kept], None]]] = [
    ("another-key", lambda kept: None),
    ("a-long-key", other_codes),
    ("a-long-key", other_state),
    ("a-long-key", lambda kept: setattr(kept, "state", kept.state[:8])),
]


async def going_on(talk: Callable[[], Any], kept: Kept) -> list[Any]:
    async with talk() as talker:
        for message in kept.resume():
            await talker.socket.send(json.dumps(message))
        await talker.send("text", turn_id="a", text=TEXT, end=True)
        found: list[Any] = await talker.until("turn.done")
        return found


@pytest.mark.parametrize(("key", "change"), CHANGES)
async def test_a_state_of_another_key_or_that_was_changed_goes_on_at_the_next_word(
    key: str, change: Callable[[Kept], None]
) -> None:
    async with speaking(ServerConfig(port=0, api_keys=KEYS)) as server:
        kept = Kept("a")
        async with server.talk(ON, additional_headers=bearer(KEYS[0])) as talker:
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            await hear(talker, kept, 6)
        change(kept)
        messages = await going_on(partial(server.talk, ON, additional_headers=bearer(key)), kept)
    (warning,) = of_type(messages, "warning")
    assert warning["code"] == "cannot_resume" and "the same key" in warning["message"]


async def test_with_a_key_a_turn_goes_on_at_the_next_sample_also_with_a_token() -> None:
    async with speaking(ServerConfig(port=0, api_keys=KEYS)) as one:
        talk = partial(one.talk, ON, additional_headers=bearer(KEYS[1]))
        undisturbed = await spoken(talk, whole(TEXT))
        again = await spoken(talk, whole(TEXT), [2, 5, 9])
        assert again.audio == undisturbed.audio and not warnings(again)
        kept = Kept("a")
        async with talk() as talker:
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            await hear(talker, kept, 4)
    async with speaking(ServerConfig(port=0, api_keys=KEYS[1:])) as other:
        key = sha256(KEYS[1].encode()).digest()
        token = Tokens([key]).mint(key, 60)
        talk = partial(other.talk, ON, additional_headers=bearer(token))
        messages = await going_on(talk, kept)
    audio = kept.audio + sound_of(messages)
    assert audio == undisturbed.audio


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def warnings(kept: Kept) -> list[Any]:
    return [m for m in kept.messages if m["type"] == "warning"]
