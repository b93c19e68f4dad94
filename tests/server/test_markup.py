"""Markup that directs the voice: utterances with another voice, language or manner, in one turn."""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import Any

import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from tests.server.commands import utterances
from tests.server.speaking import speaking
from tests.server.talking import of_type

POLYGLOT = FakeEngineConfig(frames_per_token=1, languages=("auto", "english", "german"))
SPEECH = 1_920  # samples of one byte of text, in the tests' engine


async def turn(server: Any, text: str, size: int, query: str = "") -> tuple[list[Any], list[Any]]:
    """What the client got and what the engine was told, of a text in pieces of a size."""
    async with server.talk(query) as talker:
        commands: list[Any] = server.spy_on_commands()
        for start in range(0, len(text), size):
            await talker.send("text", turn_id="a", text=text[start : start + size])
        await talker.send("turn.end", turn_id="a")
        return await talker.until("turn.done"), commands


DIALOGUE = (
    'Hello. <voice name="bass">How are you?</voice> <emotion value="excited">Very well!</emotion>'
    ' <lang xml:lang="de-DE">Bis 3 Uhr.</lang> Bye.'
)


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_voice_language_and_manner_change_inside_a_turn(size: int) -> None:
    async with speaking(engine=POLYGLOT) as server:
        messages, commands = await turn(
            server, DIALOGUE, size, "?voice=alto&language=english&seed=5&text_normalization=on"
        )
    said = utterances(commands)
    assert [text for text, _ in said] == [
        "Hello.",
        "How are you?",
        "Very well!",
        "Bis drei Uhr.",
        "Bye.",
    ]
    assert [spec.voice for _, spec in said] == ["alto", "bass", "alto", "alto", "alto"]
    languages = ["english", "english", "english", "german", "english"]
    assert [spec.language for _, spec in said] == languages
    manners = [spec.instructions for _, spec in said]
    assert manners == [None, None, "Speak in this manner: excited.", None, None]
    [done] = of_type(messages, "turn.done")
    assert done["reason"] == "complete"
    assert done["samples"] == sum(len(text) for text, _ in said) * SPEECH
    assert not of_type(messages, "warning")


async def test_what_cannot_be_done_is_a_warning_and_the_text_is_spoken_as_one() -> None:
    text = 'Hi <voice name="nobody">you</voice> <lang xml:lang="sw">there</lang> '
    text += '<prosody volume="900%">now</prosody>.'
    async with speaking() as server:
        messages, commands = await turn(server, text, 4)
    assert [text for text, _ in utterances(commands)] == ["Hi you there", "now"]
    [warning] = of_type(messages, "warning")
    assert warning["code"] == "unsupported_markup" and warning["turn_id"] == "a"
    for name in ("voice 'nobody'", "language 'sw'", "volume 9"):
        assert name in warning["message"]


async def test_a_rate_is_the_speed_of_its_utterances() -> None:
    text = 'Hi. <prosody rate="slow">Go on.</prosody> <prosody rate="x-fast">Bye.</prosody>'
    async with speaking() as server:
        messages, commands = await turn(server, text, 4)
    said = utterances(commands)
    assert [spec.speed for _, spec in said] == [1.0, 0.8, 1.4]
    [done] = of_type(messages, "turn.done")
    assert done["samples"] == sum(ceil(len(text) * SPEECH / spec.speed) for text, spec in said)
    [warning] = of_type(messages, "warning")
    assert "rate 1.6: this server has speeds from 0.7 to 1.4" in warning["message"]


async def test_tags_take_no_time_and_reports_quote_the_callers_text() -> None:
    text = '<expression value="sad"/>It is <b>so</b> *sighs* sad.'
    async with speaking() as server:
        messages, _ = await turn(server, text, 2, "?word_times=on")
    words = [word for m in of_type(messages, "turn.words") for word in m["words"]]
    texts = [word["text"] for word in words]
    assert "".join(texts) == text and len(texts) == 4
    assert texts[1:3] == [" is", " <b>so</b>"]
    times = [(word["start_ms"], word["end_ms"]) for word in words]
    assert times[0][0] == 0 and all(a[1] == b[0] for a, b in pairwise(times))
    assert of_type(messages, "turn.done")[0]["samples"] == len("It is so sad.") * SPEECH


async def test_the_filter_switched_off_reads_tags_aloud_but_pauses() -> None:
    text = 'a <b>c</b> [laughs]<break time="100ms"/>d'
    async with speaking() as server:
        messages, commands = await turn(server, text, 3, "?text_filter=off")
    assert [text for text, _ in utterances(commands)] == ["a <b>c</b> [laughs]", "d"]
    assert of_type(messages, "turn.done")[0]["reason"] == "complete"


async def test_half_a_tag_is_not_spoken_at_a_flush_and_goes_on_behind_it() -> None:
    async with speaking() as server, server.talk() as talker:
        commands: list[Any] = server.spy_on_commands()
        await talker.send("text", turn_id="a", text="One <expre")
        await talker.send("flush", turn_id="a")
        await talker.send("text", turn_id="a", text='ssion value="x"/>two <em')
        await talker.send("turn.end", turn_id="a")
        await talker.until("turn.done")
    assert [text.strip() for text, _ in utterances(commands)] == ["One", "two"]


async def test_a_flood_of_changes_is_spoken_to_its_end() -> None:
    text = "".join(f'<emotion value="e{number}"/>' for number in range(2_000)) + "End."
    async with speaking(engine=FakeEngineConfig(frames_per_token=1)) as server:
        messages, commands = await turn(server, text, 10_000)
    [(said, spec)] = utterances(commands)
    assert said == "End." and spec.instructions == "Speak in this manner: e1999."
    assert of_type(messages, "turn.done")[0]["reason"] == "complete"


async def test_the_rate_of_prosody_is_the_speed_of_its_utterance() -> None:
    text = 'One two. <prosody rate="125%">Three four.</prosody> <speed ratio="9"/>Five six.'
    async with speaking() as server:
        messages, commands = await turn(server, text, 3, "?seed=1")
    assert [spec.speed for _, spec in utterances(commands)] == [1.0, 1.25, 1.4]
    lengths = [len(said) * SPEECH / spec.speed for said, spec in utterances(commands)]
    [done] = of_type(messages, "turn.done")
    assert abs(done["samples"] - sum(lengths)) <= 3 and done["reason"] == "complete"
    [warning] = of_type(messages, "warning")
    assert warning["code"] == "unsupported_markup" and "rate 9:" in warning["message"]
