"""`turn.words` of a model that tells which token it speaks, over a real socket.

The fake model speaks 80 ms frames, three for each token, and the tokenizer's tokens are bytes: the
character at n is spoken at 0.24 n seconds.
"""

from __future__ import annotations

import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.interface import StepOutput
from realtime_tts.engine.made_codes import last_number, packed_number
from tests.server.speaking import speaking
from tests.server.talking import of_type
from tests.server.test_word_times import AT_ONCE, ON, assert_in_time, joined, words_in

TELLS = FakeEngineConfig(aligned=True)
CHARACTER_MS = 240
TEXT = "The tide is coming in. Good morning to you!"


def starts_of(text: str) -> list[float]:
    """Of each word, in milliseconds."""
    return [
        at * CHARACTER_MS
        for at in range(len(text))
        if not text[at].isspace() and (at == 0 or text[at - 1].isspace())
    ]


@pytest.mark.parametrize("query", ["", "&encoding=pcm_mulaw", "&sample_rate=48000"])
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_words_begin_when_they_are_spoken(size: int, query: str) -> None:
    asked = ON + AT_ONCE + "&trim_silence=off" + query
    async with speaking(engine=TELLS) as server, server.talk(asked) as talker:
        for start in range(0, len(TEXT), size):
            await talker.send("text", turn_id="a", text=TEXT[start : start + size])
        await talker.send("turn.end", turn_id="a")
        messages = await talker.until("turn.done")
    assert joined(messages) == TEXT
    if not query:  # else bytes are not its samples
        assert_in_time(messages)
    if size > 1:  # else its speech is in several utterances, each of which begins afresh
        found = [word["start_ms"] for word in words_in(messages)]
        assert found == pytest.approx(starts_of(TEXT), abs=0.2)
    assert all(message["exact"] is True for message in of_type(messages, "turn.words"))
    assert messages[-1]["reason"] == "complete"


async def test_estimates_do_not_claim_to_be_exact() -> None:
    async with speaking() as server, server.talk(ON + AT_ONCE) as talker:
        await talker.send("text", text=TEXT, end=True)
        messages = await talker.until("turn.done")
    assert all("exact" not in message for message in of_type(messages, "turn.words"))


async def test_an_interrupt_names_the_words_that_had_ended() -> None:
    async with (
        speaking(engine=TELLS) as server,
        server.talk("?trim_silence=off" + AT_ONCE) as talker,
    ):
        await talker.send("text", turn_id="a", text=TEXT, end=True)
        await talker.until("turn.done")
        coming = TEXT.index("coming") * CHARACTER_MS
        await talker.send("interrupt", turn_id="a", played_ms=coming + 10)
        answer = (await talker.until("turn.interrupted"))[-1]
    assert answer["text_spoken"].rstrip() == "The tide is"
    assert answer["text_spoken"] + answer["text_remaining"] == TEXT


async def test_words_that_were_left_out_are_the_turns_reason_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engine ends the turn as complete; that its last word was never reached, the server
    finds out."""
    async with speaking(engine=TELLS) as server, server.talk("?" + AT_ONCE.lstrip("&")) as talker:
        make_frame = server.engine._make_frame

        def stuck(id: str, output: StepOutput) -> None:
            make_frame(id, output)
            if id in output.tokens:
                token = min(last_number(output.tokens[id]), TEXT.index("coming"))
                output.tokens[id] = packed_number(token)

        monkeypatch.setattr(server.engine, "_make_frame", stuck)
        await talker.send("text", text=TEXT, end=True)
        assert (await talker.until("turn.done"))[-1]["reason"] == "guard_text"
        assert server.value("tts_guard_stops_total", reason="guard_text") == 1
