"""TTSTextFrames by the word: in time with the sound, and in the LLM's context as far as heard."""

from __future__ import annotations

import asyncio

import pytest
from pipecat.frames.frames import (
    AggregatedTextFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    OutputAudioRawFrame,
    StartFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.services.tts_service import TextAggregationMode
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.utils.string import TextPartForConcatenation, concatenate_aggregated_text

from realtime_tts.adapters.pipecat_contexts import is_unspaced
from realtime_tts.client import Interrupted
from tests.clients.pipecat.our_service import Settings, service
from tests.clients.pipecat_rig import PATIENCE, Rig, pipeline, response
from tests.clients.serving import Server
from tests.clients.wire import wire_to

TEXT = "The tide is coming in. The boats, all twelve of them, are going home."
TOKENS = [TEXT[at : at + 4] for at in range(0, len(TEXT), 4)]
NANOSECONDS = 1_000_000_000


def words_of(rig: Rig) -> list[TTSTextFrame]:
    return list(rig.of(TTSTextFrame))


def context_of(rig: Rig) -> str:
    """What the framework's aggregator makes of the words."""
    return concatenate_aggregated_text(
        [
            TextPartForConcatenation(
                frame.raw_text or frame.text,
                includes_inter_part_spaces=frame.includes_inter_frame_spaces,
            )
            for frame in words_of(rig)
            if frame.append_to_context
        ]
    )


@pytest.mark.parametrize("mode", list(TextAggregationMode))
async def test_each_word_has_its_time_in_the_audio(fake: Server, mode: TextAggregationMode) -> None:
    async with pipeline(service(fake.url, text_aggregation_mode=mode)) as rig:
        await rig.send(*response(*TOKENS))
        await rig.until_stopped()
        words = words_of(rig)
        assert [frame.text for frame in words] == TEXT.split()
        times = [frame.pts for frame in words]
        assert times == sorted(times)
        seconds = len(rig.audio()) / 2 / 24_000
        assert 0 < (times[-1] - times[0]) / NANOSECONDS < seconds
        assert {frame.context_id for frame in words} == set(rig.contexts())
        assert all(frame.append_to_context for frame in words)
        (stopped,) = rig.of(TTSStoppedFrame)
        assert rig.down.index(stopped) > rig.down.index(words[-1])
        assert rig.down.index(words[0]) < rig.down.index(rig.of(TTSAudioRawFrame)[-1])
        assert any(isinstance(frame, AggregatedTextFrame) for frame in rig.down)
    assert not rig.errors


async def test_after_an_interruption_no_word_of_the_old_reply_comes(fake: Server) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame("One, two. " + TEXT * 40))
        await rig.until(lambda: len(words_of(rig)) > 5)
        await rig.send(InterruptionFrame())
        await rig.until(lambda: rig.of(InterruptionFrame))
        old = len(words_of(rig))
        await asyncio.to_thread(fake.until, "tts_open_turns", 0)
        await rig.send(*response("Yes?"))
        await rig.until_stopped()
    words = [frame.text for frame in words_of(rig)]
    assert words[:old] == ("One, two. " + TEXT * 40).split()[:old], "and the text goes on"
    assert words[old:] == ["Yes?"]


@pytest.mark.parametrize(
    "text",
    [
        "It is **very** late, 🙂 and I go.",
        "It is very late 🙂",
        "It costs $3.50, and that is 42 in all.",
        'Wait. <break time="300ms"/>Go on, please.',
        "今天天气很好，我们去公园。",
        "我用Python写代码，在2024年。",
        "我用 Python 写代码，好 吗？",
        "Python是语言，用Python 写。",
        "I like 東京 a lot. And 大阪, too.",
        "สวัสดีครับ ผมชื่อ Tom ครับ",
        "안녕하세요, 반갑습니다.",
        "a|b and c/d, שלום עולם",
    ],
)
@pytest.mark.parametrize("mode", list(TextAggregationMode))
async def test_the_context_gets_the_text_as_it_was(
    fake: Server, text: str, mode: TextAggregationMode
) -> None:
    async with pipeline(service(fake.url, text_aggregation_mode=mode)) as rig:
        await rig.send(*response(*[text[at : at + 3] for at in range(0, len(text), 3)]))
        await rig.until_stopped()
    assert context_of(rig) == text
    assert len(words_of(rig)) > 1


async def test_sentences_of_a_script_without_spaces_get_none_between_them(fake: Server) -> None:
    mode = TextAggregationMode.SENTENCE
    async with pipeline(service(fake.url, text_aggregation_mode=mode)) as rig:
        await rig.send(*response("第一句。", "第二句。"))
        await rig.until_stopped()
    assert context_of(rig) == "第一句。第二句。"


async def test_the_next_context_counts_from_its_own_sound(fake: Server) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(TTSSpeakFrame("One two three."), TTSSpeakFrame("Four five six."))
        await rig.until_stopped(2)
        words = words_of(rig)
    assert [frame.text for frame in words] == ["One", "two", "three.", "Four", "five", "six."]
    assert [frame.pts for frame in words] == sorted(frame.pts for frame in words)
    assert len({frame.context_id for frame in words}) == 2


@pytest.mark.parametrize("silence", [0.0, 1.0])
async def test_replies_in_a_row_have_the_words_where_their_sound_is_heard(
    fake: Server, silence: float
) -> None:
    """They come faster than they are heard, and each is played behind the ones before, and behind
    the silence that Pipecat puts after each if it is told to."""
    behind = {"push_silence_after_stop": silence > 0, "silence_time_s": silence}
    async with pipeline(service(fake.url, **behind)) as rig:
        await rig.send(
            *(TTSSpeakFrame(f"{number} is a number.") for number in ("One", "Two", "Six"))
        )
        await rig.until_stopped(3)
        first = {frame.context_id: frame.pts for frame in reversed(words_of(rig))}
        begins = min(first.values())
        seconds = 0.0
        for context_id in filter(None, rig.contexts()):  # the silence has none
            heard_at = (first[context_id] - begins) / NANOSECONDS
            assert heard_at == pytest.approx(seconds, abs=0.2)
            seconds += len(rig.audio(context_id)) / 2 / 24_000 + silence
    assert seconds > 2


class Loudspeaker(BaseOutputTransport):
    """Plays in real time, to nobody. `played`: seconds so far."""

    def __init__(self) -> None:
        super().__init__(TransportParams(audio_out_enabled=True, audio_out_sample_rate=24_000))
        self.played = 0.0
        self.reached = asyncio.Event()

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        seconds = len(frame.audio) / 2 / 24_000
        await asyncio.sleep(seconds)
        self.played += seconds
        if self.played > 2:
            self.reached.set()
        return True


async def test_after_an_interruption_the_context_holds_what_was_heard(fake: Server) -> None:
    """By the framework's own transport and aggregator; the speech is sent far ahead."""
    context = LLMContext()
    assistant = LLMContextAggregatorPair(context).assistant()
    loudspeaker = Loudspeaker()
    chain = Pipeline([service(fake.url), loudspeaker, assistant])
    async with pipeline(chain) as rig:
        await rig.send(*response(*TOKENS))
        async with asyncio.timeout(PATIENCE):
            await loudspeaker.reached.wait()
        await rig.send(InterruptionFrame())
        await rig.until(lambda: context.messages)
    (message,) = context.messages
    assert TEXT.startswith(message["content"])
    assert 2 <= len(message["content"].split()) < len(TEXT.split())


async def test_late_sound_makes_words_late_and_the_server_knows(fake: Server) -> None:
    """What the context holds, what the server says was heard, and what was played: one thing."""
    context = LLMContext()
    assistant = LLMContextAggregatorPair(context).assistant()
    loudspeaker, reports = Loudspeaker(), asyncio.Queue[Interrupted]()
    async with wire_to(fake.url) as wire:
        tts = service(wire.url, settings=Settings(layout="streaming", lead_ms=500))
        tts.add_event_handler("on_speech_interrupted", lambda _, report: reports.put_nowait(report))
        async with pipeline(Pipeline([tts, loudspeaker, assistant])) as rig:
            await rig.send(*response(*TOKENS))
            await rig.until(lambda: loudspeaker.played > 0.3)
            wire.open.clear()
            await asyncio.sleep(2.0)
            wire.open.set()
            async with asyncio.timeout(PATIENCE):
                await loudspeaker.reached.wait()
            await rig.send(InterruptionFrame())
            report = await asyncio.wait_for(reports.get(), PATIENCE)
            played = loudspeaker.played
            await rig.until(lambda: context.messages)
    assert report.played_ms / 1000 == pytest.approx(played, abs=0.4)
    (message,) = context.messages
    heard = message["content"].split()
    assert heard == TEXT.split()[: len(heard)]
    assert abs(len(heard) - len(report.text_spoken.split())) <= 1


async def test_replies_that_wait_behind_the_one_heard_hide_nothing_of_it(fake: Server) -> None:
    loudspeaker, reports = Loudspeaker(), asyncio.Queue[Interrupted]()
    tts = service(fake.url)
    tts.add_event_handler("on_speech_interrupted", lambda _, report: reports.put_nowait(report))
    async with pipeline(Pipeline([tts, loudspeaker])) as rig:
        await rig.send(TTSSpeakFrame(TEXT), TTSSpeakFrame("Yes."), *response("They are."))
        async with asyncio.timeout(PATIENCE):
            await loudspeaker.reached.wait()  # all of it went to the transport long ago
        await rig.send(InterruptionFrame())
        found = [await asyncio.wait_for(reports.get(), PATIENCE) for _ in range(3)]
    assert [each.text_spoken + each.text_remaining for each in found] == [TEXT, "Yes.", "They are."]
    assert found[0].text_spoken and not (found[1].text_spoken or found[2].text_spoken)


@pytest.mark.parametrize("at_the_end", [False, True])
async def test_what_the_context_holds_is_not_told_as_unheard(
    fake: Server, at_the_end: bool
) -> None:
    """Where the text stalls and the sound comes late as well, as under load."""
    context = LLMContext()
    assistant = LLMContextAggregatorPair(context).assistant()
    loudspeaker, reports = Loudspeaker(), asyncio.Queue[Interrupted]()
    async with wire_to(fake.url) as wire:
        tts = service(wire.url, settings=Settings(layout="streaming"))
        tts.add_event_handler("on_speech_interrupted", lambda _, report: reports.put_nowait(report))
        async with pipeline(Pipeline([tts, loudspeaker, assistant])) as rig:
            await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(TEXT[:13]))
            await rig.until(lambda: loudspeaker.played > 0.3)
            wire.open.clear()
            await asyncio.sleep(1.5)
            await rig.send(LLMTextFrame(TEXT[13:]), LLMFullResponseEndFrame())
            await asyncio.sleep(0.5)
            wire.open.set()
            async with asyncio.timeout(PATIENCE):
                await loudspeaker.reached.wait()
            if at_the_end:
                await rig.until_stopped()
            await rig.send(InterruptionFrame())
            await rig.until(lambda: context.messages)
            heard = context.messages[0]["content"].split()
            if at_the_end:
                assert heard == TEXT.split()
                await asyncio.sleep(0.3)
                assert reports.empty(), "nothing was left unheard"
                return
            report = await asyncio.wait_for(reports.get(), PATIENCE)
    assert heard == TEXT.split()[: len(heard)]
    assert abs(len(heard) - len(report.text_spoken.split())) <= 1


@pytest.mark.parametrize("stall", [0.0, 2.0])
async def test_sentences_are_begun_no_sooner_and_heard_no_later_than_tokens(
    fake: Server, stall: float
) -> None:
    """The first of a reply whose text comes at 20 tokens a second; with a stall in a sentence."""
    first: dict[TextAggregationMode, float] = {}
    last: dict[TextAggregationMode, float] = {}
    for mode in TextAggregationMode:
        async with pipeline(service(fake.url, text_aggregation_mode=mode)) as rig:
            began = asyncio.get_running_loop().time()
            await rig.send(LLMFullResponseStartFrame())
            for number, token in enumerate(TOKENS):
                await asyncio.sleep(0.05 + (stall if number == 9 else 0.0))
                await rig.send(LLMTextFrame(token))
                if mode not in first and rig.of(TTSAudioRawFrame):
                    first[mode] = asyncio.get_running_loop().time() - began
            await rig.send(LLMFullResponseEndFrame())
            await rig.until_stopped()
            first.setdefault(mode, asyncio.get_running_loop().time() - began)
            last[mode] = len(rig.audio()) / 2 / 24_000
            assert context_of(rig) == TEXT
    token, sentence = TextAggregationMode.TOKEN, TextAggregationMode.SENTENCE
    assert first[token] <= first[sentence]
    assert last[token] == pytest.approx(last[sentence], abs=0.5), "the same speech"


@pytest.mark.parametrize("mode", list(TextAggregationMode))
async def test_a_reply_with_nothing_to_speak_is_a_message_of_its_own(
    fake: Server, mode: TextAggregationMode
) -> None:
    context = LLMContext()
    assistant = LLMContextAggregatorPair(context).assistant()
    chain = Pipeline([service(fake.url, text_aggregation_mode=mode), Loudspeaker(), assistant])
    async with pipeline(chain) as rig:
        await rig.send(*response("🙂"), *response("Yes."))
        await rig.until_stopped(2)
    assert [message["content"] for message in context.messages] == ["🙂", "Yes."]


def test_scripts_without_spaces_are_known() -> None:
    assert all(map(is_unspaced, ["今天", "「です", "สวัสดี"]))
    assert not any(map(is_unspaced, ["word", "한국어", "слово", "42", "…", ""]))
