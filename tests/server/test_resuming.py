"""A turn whose socket is lost goes on in another session, at the very next sample."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.server.resumption import Position
from tests.engine.faulty import Faults
from tests.server.resuming import Kept, hear, spoken, whole
from tests.server.speaking import speaking
from tests.server.talking import of_type

ON = "?resume=on&word_times=on&lead_ms=30000"
TEXTS = [
    "The tide is coming in. Good morning to you, and to all who are with you!",
    'Wait.<break time="300ms"/> Go on, please.<break time="100ms"/>',
    "One **bold** word 🙂 and [a link](https://an.example/of/some/length) in between. " * 3,
    "It costs $3.50, and that is 42 in all.\n\n- a list\n- of two  ",
    '[excited] Well, <voice name="bass">no <spell>A1</spell></voice> *sighs* <b>yes</b>.</p>',
    'Low <prosody volume="soft">is the tide.</prosody> <volume ratio="2"/>And it turns at noon.',
    "Hi.",
]


def same(kept: Kept, undisturbed: Kept) -> None:
    assert kept.audio == undisturbed.audio
    assert kept.done is not None and undisturbed.done is not None
    counts = ("reason", "samples", "text_chars")
    assert [kept.done[name] for name in counts] == [undisturbed.done[name] for name in counts]
    assert kept.said == undisturbed.said
    ttfa = kept.done["ttfa_ms"]
    assert ttfa is None or ttfa >= 0
    ends = [word["end_ms"] for word in kept.words]
    assert ends == sorted(ends)
    chars = [chars for _, chars in kept.told]
    assert chars == sorted(chars), "what was spoken stays spoken"
    assert not [m for m in kept.messages if m["type"] in ("error", "warning")]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [0, 7])
@pytest.mark.parametrize("silence", [0, 3_000])
async def test_a_turn_goes_on_at_the_next_sample(text: str, size: int, silence: int) -> None:
    random = Random(f"{size}, {silence}: {text}")  # other moments in every case
    engine = FakeEngineConfig(frames_per_token=1, silence=silence, safe_tokens=40)
    async with speaking(engine=engine) as server:
        connect = partial(server.talk, ON)
        undisturbed = await spoken(connect, whole(text, size))
        moments = sorted(random.choices(range(undisturbed.packets + 1), k=4))
        kept = await spoken(connect, whole(text, size), moments)
        same(kept, undisturbed)
        await server.settled()


@pytest.mark.parametrize(
    "query", ["&layout=streaming", "&layout=full_text", "&trim_silence=off&speed=0.8", "&speed=1.4"]
)
@pytest.mark.parametrize("pacing", ["token", "clause", "sentence"])
async def test_a_turn_goes_on_with_every_layout_and_pacing(query: str, pacing: str) -> None:
    text = "Good morning to you, and welcome. The tide is coming in; it turns at noon."
    random = Random(query + pacing)
    async with speaking(engine=FakeEngineConfig(frames_per_token=1, silence=2_000)) as server:
        connect = partial(server.talk, f"{ON}&pacing={pacing}{query}")
        undisturbed = await spoken(connect, whole(text))
        for moment in random.sample(range(1, undisturbed.packets + 1), k=4):
            same(await spoken(connect, whole(text), [moment]), undisturbed)


async def test_flushes_are_where_they_were() -> None:
    flush = {"type": "flush"}
    actions = [{"type": "text", "text": "It costs $2"}, flush, *whole(".50, or 98.6 of them.")]
    async with speaking() as server:
        connect = partial(server.talk, ON)
        undisturbed = await spoken(connect, actions)
        for moment in range(1, undisturbed.packets + 1, 3):
            same(await spoken(connect, actions, [moment]), undisturbed)


async def test_a_turn_whose_end_was_lost_is_done_at_once() -> None:
    async with speaking() as server:
        connect = partial(server.talk, ON)
        undisturbed = await spoken(connect, whole("The tide is coming in."))
        kept = await spoken(connect, whole("The tide is coming in."), [undisturbed.packets])
    same(kept, undisturbed)
    assert kept.packets == undisturbed.packets, "nothing was sent twice"


async def test_without_being_asked_for_no_state_is_sent() -> None:
    async with speaking() as server:
        kept = await spoken(partial(server.talk, "?lead_ms=30000"), whole("The tide is in."))
    assert (kept.state, kept.told) == ("", [])


@pytest.mark.parametrize("speed", [1, 1.25])
async def test_a_row_that_fails_before_it_is_where_it_was_ends_its_turn_alone(speed: float) -> None:
    faults, kept = Faults(), Kept("a")
    async with speaking(faults=faults) as server:
        async with server.talk(f"{ON}&speed={speed}") as talker:
            await talker.send("text", turn_id="a", text=TEXTS[0], end=True)
            await hear(talker, kept, 6)
        faults.numerics = _Everybody()
        kept.next = None
        async with server.talk(f"{ON}&speed={speed}") as talker:
            for message in [*kept.resume(), {"turn_id": "a", **whole(TEXTS[0])[0]}]:
                await talker.socket.send(json.dumps(message))
            *_, error = await talker.until("error")
            assert (error["code"], error["fatal"]) == ("numerics", False)


class _Everybody(set[str]):
    def __contains__(self, id: object) -> bool:
        return True


async def half(server: Any, text: str) -> Kept:
    """A turn whose socket is lost after three packets."""
    kept = Kept("a")
    async with server.talk(ON) as talker:
        await talker.send("text", turn_id="a", text=text, end=True)
        await hear(talker, kept, 3)
    return kept


TEXT = "The tide is coming in. Good morning to you, and to all who are with you!"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda kept: setattr(kept, "part", ""), "expected `part`"),
        (lambda kept: setattr(kept, "part", b64encode(b"\xff\x00garbage").decode()), "expected `p"),
        (lambda kept: setattr(kept, "state", b64encode(b"\x93\x01").decode()), "expected `part`"),
        (lambda kept: kept.codes.append(b64encode(b"\x01").decode()), "whole frames"),
        (lambda kept: kept.codes.append(b64encode(b"\xff" * 32).decode()), "codes from 0 to 2047"),
        (lambda kept: kept.codes.clear(), "are no"),
        (lambda kept: setattr(kept, "samples", 2**50), "expected `samples`"),
        (lambda kept: setattr(kept, "samples", 0), "expected `samples`"),
    ],
)
async def test_a_state_that_is_of_no_use_goes_on_at_the_next_word(
    change: Callable[[Kept], None], why: str
) -> None:
    engine = FakeEngineConfig(frames_per_token=1, max_frames=1_000)
    async with speaking(engine=engine) as server:
        kept = await half(server, TEXT)
        kept.text_chars = 4
        change(kept)
        kept.words.clear()
        brought = kept.samples
        async with server.talk(ON) as talker:
            for message in kept.resume():
                if message["type"] == "turn.codes" and not message["codes"]:
                    continue
                await talker.socket.send(json.dumps(message))
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            await hear(talker, kept, None)
        (warning,) = [m for m in kept.messages if m["type"] == "warning"]
        assert warning["code"] == "cannot_resume" and why in warning["message"]
        assert kept.done is not None and kept.done["reason"] == "complete"
        assert kept.done["text_chars"] == len(TEXT)
        assert kept.done["ttfa_ms"] > 0, "of the first packet here: that of the turn is not known"
        spoken_tokens = len(TEXT) - len("The ")  # one frame for each
        more = kept.done["samples"] - brought
        assert abs(more - spoken_tokens * 1_920) < 2 * 1_920
        await server.settled()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"place": None}, "a place in sound at the speed 1.25"),
        ({"speed": 1.0}, "a place in sound at the speed 1"),
        ({"speed": 0.7}, "a place in sound at the speed 0.7"),
        ({"speed": 3.0}, "expected `part` and `state`"),
        ({"place": [2**50, 2**50]}, "a place in sound"),
        ({"place": [0, 0]}, "samples do not lead to sample 0"),
    ],
)
async def test_a_place_that_is_none_goes_on_at_the_next_word(
    fields: dict[str, Any], why: str
) -> None:
    async with speaking() as server:
        kept = Kept("a")
        async with server.talk(f"{ON}&speed=1.25") as talker:
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            await hear(talker, kept, 12)
        position = msgspec.msgpack.decode(b64decode(kept.state), type=Position)
        assert position.place is not None and position.speed == 1.25
        names = Position.__struct_fields__
        values = [fields.get(name, getattr(position, name)) for name in names]
        kept.state = b64encode(msgspec.msgpack.encode(values)).decode()
        async with server.talk(f"{ON}&speed=1.25") as talker:
            for message in kept.resume():
                await talker.socket.send(json.dumps(message))
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            await hear(talker, kept, None)
        (warning,) = [m for m in kept.messages if m["type"] == "warning"]
        assert warning["code"] == "cannot_resume" and why in warning["message"]
        assert kept.done is not None and kept.done["reason"] == "complete"
        await server.settled()


async def test_another_voice_does_not_go_on_in_the_middle_of_a_word() -> None:
    async with speaking() as server:
        kept = await half(server, TEXT)
        other = await spoken(partial(server.talk, ON + "&voice=bass"), whole(TEXT))
        assert not [m for m in other.messages if m["type"] == "warning"]
        async with server.talk(ON + "&voice=bass") as talker:
            for message in kept.resume():
                await talker.socket.send(json.dumps(message))
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            messages = await talker.until("turn.done")
        (warning,) = of_type(messages, "warning")
        assert "another checkpoint, version of the server, or settings" in warning["message"]


async def test_a_resumed_turn_can_be_interrupted_at_once_and_later() -> None:
    async with speaking() as server:
        for wait in (0, 4):
            kept = await half(server, TEXT)
            async with server.talk(ON) as talker:
                for message in kept.resume():
                    await talker.socket.send(json.dumps(message))
                await talker.send("text", turn_id="a", text=TEXT, end=True)
                if wait:
                    await hear(talker, kept, kept.packets + wait, leave=False)
                await talker.send("interrupt", turn_id="a", played_ms=200)
                messages = await talker.until("turn.done")
            (report,) = of_type(messages, "turn.interrupted")
            assert report["text_spoken"] + report["text_remaining"] == TEXT
            assert report["samples_sent"] >= kept.samples
            assert messages[-1]["reason"] == "interrupted"
        await server.settled()


async def test_a_turn_that_the_session_knows_is_not_resumed() -> None:
    async with speaking() as server, server.talk(ON) as talker:
        await talker.send("text", turn_id="a", text=TEXT)
        await talker.send("turn.resume", turn_id="a", samples=0, text_chars=0)
        messages = await talker.up_to(
            lambda m: isinstance(m, dict) and m["type"] == "error", past_errors=True
        )
        assert messages[-1]["code"] == "turn_known"
        await talker.send("turn.end", turn_id="a")
        assert (await talker.until("turn.done"))[-1]["reason"] == "complete"


async def test_codes_beyond_the_longest_turn_are_refused() -> None:
    async with speaking(engine=FakeEngineConfig(max_frames=10)) as server, server.talk() as talker:
        await talker.send("turn.codes", turn_id="a", codes=[b64encode(bytes(374)).decode()])
        error = await talker.next()
        assert (error["code"], error["fatal"]) == ("bad_message", False)
        assert "at most 340 bytes of codes, found 374" in error["message"]
