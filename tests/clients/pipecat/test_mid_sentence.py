"""Words of a sentence whose text is not complete: due when they are heard, and in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from pipecat.frames.frames import (
    AggregatedTextFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair

from tests.clients.pipecat.our_service import service
from tests.clients.pipecat.test_words import Loudspeaker, context_of, words_of
from tests.clients.pipecat_rig import PATIENCE, pipeline, response
from tests.clients.serving import Server

TEXT = "Let me look that up for you and for all of your friends, one mom"
TOKENS = [LLMTextFrame(TEXT[at : at + 4]) for at in range(0, len(TEXT), 4)]


@pytest.mark.parametrize("end", [[], [LLMFullResponseEndFrame()]], ids=["going on", "ended"])
async def test_an_interruption_in_a_first_sentence_keeps_what_was_heard(
    fake: Server, end: Sequence[Frame]
) -> None:
    """In what follows on a tool call, for example; or the text has no full stop."""
    context = LLMContext()
    assistant = LLMContextAggregatorPair(context).assistant()
    loudspeaker = Loudspeaker()
    async with pipeline(Pipeline([service(fake.url), loudspeaker, assistant])) as rig:
        await rig.send(LLMFullResponseStartFrame(), *TOKENS)
        await rig.until(lambda: loudspeaker.played > 0)  # words were due before the text's end
        await rig.send(*end)
        async with asyncio.timeout(PATIENCE):
            await loudspeaker.reached.wait()
        await rig.send(InterruptionFrame())
        await rig.until(lambda: context.messages)
    (message,) = context.messages
    heard = message["content"].split()
    assert heard == TEXT.split()[: len(heard)]
    assert 2 < len(heard) < len(TEXT.split())


async def test_words_come_while_their_sentence_waits_for_its_end(fake: Server) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(LLMFullResponseStartFrame(), *TOKENS)
        await rig.until(lambda: len(words_of(rig)) == len(TEXT.split()) - 1)
        await rig.send(LLMTextFrame("ent. Here it"), LLMTextFrame(" is."))
        await rig.send(LLMFullResponseEndFrame())
        await rig.until_stopped()
        words, segments = words_of(rig), rig.of(AggregatedTextFrame)
    assert context_of(rig) == f"{TEXT}ent. Here it is."
    assert [frame.pts for frame in words] == sorted(frame.pts for frame in words)
    announced = [each.text for each in segments if not isinstance(each, TTSTextFrame)]
    assert "".join(announced).split() == f"{TEXT}ent. Here it is.".split()
    assert not rig.errors


async def test_text_that_a_transform_changes_is_reported_as_it_was(fake: Server) -> None:
    async def louder(text: str, _: object) -> str:
        return text.replace("mom", "MOM")

    async with pipeline(service(fake.url, text_transforms=[("*", louder)])) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame("One "), LLMTextFrame("mom"))
        await rig.send(LLMTextFrame("ent, pl"), LLMTextFrame("ease."), LLMFullResponseEndFrame())
        await rig.until_stopped()
    assert context_of(rig).split() == "One moment, please.".split()


async def test_sentences_without_word_times_have_one_space_between_them(fake: Server) -> None:
    async with pipeline(service(fake.url, word_times=False)) as rig:
        await rig.send(*response("One two.", " Three", " four.", " Five."))
        await rig.until_stopped()
        assert context_of(rig) == "One two. Three four. Five."
        assert len(words_of(rig)) == 3
