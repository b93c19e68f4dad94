"""A session over a real socket: text in, packets out, and every way a turn can end."""

from __future__ import annotations

import asyncio
import random
import time
from itertools import pairwise
from typing import Any

import pytest
import websockets

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.link import Append, Finish, Open, Played
from realtime_tts.server.connection import Connection
from tests.engine.faulty import Faults
from tests.server.commands import said_since
from tests.server.peers import Connecting
from tests.server.speaking import speaking
from tests.server.talking import of_type, packets_of, sound_of
from tts_scheduler import SchedulerConfig

FRAME_SAMPLES = 1_920
PACKET_BYTES = 4_096


async def test_a_turn_is_spoken_by_the_packet_rule() -> None:
    async with speaking() as server, server.talk() as talker:
        began = time.monotonic()
        await talker.send("text", text="Hello there.", end=True)
        messages = await talker.until("turn.done")
        took = time.monotonic() - began
        started, *packets, done = messages
        assert started["type"] == "turn.started"
        sizes = [len(packet) for packet in packets]
        assert all(size == PACKET_BYTES for size in sizes[1:-1])
        assert 0 < sizes[-1] <= PACKET_BYTES
        assert sum(sizes) == 2 * done["samples"] == 2 * FRAME_SAMPLES * len("Hello there.")
        assert (done["reason"], done["text_chars"]) == ("complete", 12)
        assert done["underruns"] == server.value("tts_underruns_total")  # of the machine, if any
        assert 0 < done["ttfa_ms"] < took * 1_000


async def test_text_in_pieces_gives_the_same_audio() -> None:
    async with speaking() as server:
        heard = []
        for pieces in (["Good morning."], list("Good morning."), ["Good mor", "ning."]):
            async with server.talk("?voice=alto") as talker:
                for piece in pieces:
                    await talker.send("text", text=piece)
                await talker.send("turn.end")
                heard.append(sound_of(await talker.until("turn.done")))
        assert heard[0] == heard[1] == heard[2]


async def test_a_long_text_is_taken_in_bit_by_bit(slices: Any) -> None:
    """It sounds as ever, what follows it comes behind it, and an end in the middle of it is one."""
    async with speaking() as server:
        async with server.talk() as talker:
            await talker.send("text", turn_id="a", text="One long text, ")
            await talker.send("text", turn_id="a", text="and its end.", end=True)
            await talker.send("text", turn_id="b", text="Another.", end=True)
            first, second = await talker.until("turn.done"), await talker.until("turn.done")
            length = len("One long text, and its end.")
            assert len(sound_of(first)) == 2 * FRAME_SAMPLES * length
            assert of_type(second, "turn.done")[0]["turn_id"] == "b"
            assert slices.joined() == "One long text, and its end.Another."
            assert slices.largest() == 5 and slices.each_in_its_round()
        async with server.talk() as talker:
            await talker.send("text", turn_id="c", text="word " * 300, end=True)
            server.running.front.end_sessions()
            assert (await talker.until("error"))[-1]["code"] == "going_away"
        await server.settled()


async def test_an_interrupt_overtakes_a_long_text(slices: Any) -> None:
    long = "word " * 2_000
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", turn_id="a", text=long)
        await talker.send("interrupt")
        interrupted = (await talker.until("turn.interrupted"))[-1]
        assert interrupted["text_spoken"] + interrupted["text_remaining"] == long
        assert len(slices.joined()) < len(long) / 2
        await talker.send("text", text="Next.", end=True)
        assert of_type(await talker.until("turn.done"), "turn.done")[0]["reason"] == "interrupted"
        assert of_type(await talker.until("turn.done"), "turn.done")[0]["reason"] == "complete"
    await server.settled()


async def test_a_long_text_that_comes_with_its_end_is_whole_to_the_engine(slices: Any) -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text="One long text, whole.", end=True)
        seen = await talker.until("turn.done")
        assert seen[0]["layout"] == "full_text"
        assert len(slices.seen) == 5


async def test_text_that_waited_in_the_queue_is_taken_in_bit_by_bit_too(slices: Any) -> None:
    """An interrupt that comes in between leaves all of it to be said."""
    long = "Some more words. " * 50
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", turn_id="a", text="One. ")
        await talker.send("text", turn_id="b", text=long)
        await talker.send("text", turn_id="b", text=long, end=True)
        await talker.send("turn.end", turn_id="a")
        await slices.first(6)
        slices.hold()
        await talker.send("interrupt")
        interrupted = (await talker.until("turn.interrupted"))[-1]
        slices.go_on()
        assert interrupted["turn_id"] == "b"
        assert (interrupted["text_spoken"], interrupted["text_remaining"]) == ("", long * 2)
        assert slices.each_in_its_round() and len(slices.joined()) < len(long)
        await talker.send("text", text="Next.", end=True)
        await talker.until("turn.done")
        assert of_type(await talker.until("turn.done"), "turn.done")[0]["reason"] == "complete"
    await server.settled()


async def test_turns_wait_for_each_other_and_never_mix() -> None:
    async with speaking() as server, server.talk() as talker:
        for turn in "abc":
            await talker.send("text", turn_id=turn, text=f"Turn {turn}.", end=True)
        messages = []
        for _ in range(3):
            messages += await talker.until("turn.done")
        brackets = [(m["type"], m["turn_id"]) for m in messages if isinstance(m, dict)]
        expected = [(type, turn) for turn in "abc" for type in ("turn.started", "turn.done")]
        assert brackets == expected


@pytest.mark.parametrize("text", ["", "   \n", "...", "\U0001f600", "**"])
async def test_a_turn_with_nothing_to_speak_never_reaches_the_engine(text: str) -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        await talker.send("text", text=text, end=True)
        warning, done = await talker.until("turn.done")
        assert (warning["type"], warning["code"]) == ("warning", "no_speakable_text")
        assert (done["reason"], done["samples"], done["ttfa_ms"]) == ("complete", 0, None)
        assert commands == []


async def test_text_in_a_script_of_no_language_of_the_voice_is_a_warning_and_not_spoken() -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        for piece in ("Say Пр", "ивет or ", "你好 to them."):
            await talker.send("text", text=piece)
        await talker.send("turn.end")
        messages = await talker.until("turn.done")
        (warning,) = of_type(messages, "warning")
        assert warning["code"] == "unspeakable_script"
        assert "Cyrillic, Chinese" in warning["message"]
        assert said_since(commands) == "Say or to them."


async def test_an_interrupted_turn_says_which_text_it_left_out() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text="Say Привет to them, and then go on for a while. " * 3)
        await talker.until("turn.started")
        await talker.send("interrupt")
        messages = [m for m in await talker.until("turn.done") if isinstance(m, dict)]
    assert [m["type"] for m in messages[-3:]] == ["warning", "turn.interrupted", "turn.done"]
    assert messages[-3]["code"] == "unspeakable_script" and "Cyrillic" in messages[-3]["message"]


async def test_what_comes_before_the_first_word_is_spoken_with_it() -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        for piece in ("...", " and ", "so."):
            await talker.send("text", text=piece)
        await talker.send("turn.end")
        await talker.until("turn.done")
        assert said_since(commands) == "... and so."


async def test_what_the_client_says_reaches_the_engine() -> None:
    async with speaking() as server, server.talk("?lead_ms=500&voice=alto&seed=5") as talker:
        commands = server.spy_on_commands()
        await talker.send("text", text="chrysanthemum")  # 3 s: it is on the air when `played` comes
        await talker.send("flush")
        assert (await talker.next())["type"] == "turn.started"
        await talker.send("played", played_samples=480)
        await talker.send("turn.end")
        await talker.until("turn.done")
        opened = commands[0]
        assert isinstance(opened, Open)
        assert (opened.lead_cap, opened.spec.voice, opened.spec.seed) == (0.5, "alto", 5)
        id = opened.id
        assert commands[1:] == [Append(id, [*b"chrysanthemum"]), Finish(id), Played(id, 0.02)]


async def test_the_engine_knows_when_the_listener_is_free() -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        for text in ("The first turn.", "The second, heard after the first."):
            await talker.send("text", text=text, end=True)
            await talker.until("turn.done")
        await talker.send("interrupt")  # whoever listened has stopped
        await talker.until("turn.interrupted")
        await talker.send("text", text="The third.", end=True)
        await talker.until("turn.done")
        first, second, third = [
            command.listener_free_after for command in commands if isinstance(command, Open)
        ]
        assert first == third == 0.0
        assert 0.5 < second < len("The first turn.") * 0.08


async def test_without_a_seed_every_turn_draws_another() -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        for _ in range(3):
            await talker.send("text", text="Hi.", end=True)
            await talker.until("turn.done")
        seeds = {command.spec.seed for command in commands if isinstance(command, Open)}
        assert len(seeds) == 3


async def test_an_engine_too_slow_for_speech_makes_underruns_and_says_so() -> None:
    async with speaking(engine=FakeEngineConfig(step_seconds=0.2, frames_per_token=1)) as server:
        # Trimmed, sound of three steps would be saved up first: on a busy machine, all of it.
        async with server.talk("?trim_silence=off") as talker:
            await talker.send("text", text="Slow and steady.", end=True)
            done = (await talker.until("turn.done"))[-1]
            assert done["underruns"] > 0
            assert server.value("tts_underruns_total") == done["underruns"]
            assert server.value("tts_packets_late_total") == done["underruns"]
            assert server.value("tts_underrun_seconds_count") == done["underruns"]


async def test_an_interrupt_is_answered_at_once_and_tells_what_was_heard() -> None:
    text = "One two three four five six seven eight nine ten."
    async with speaking(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        async with server.talk() as talker:
            await talker.send("text", text=text)
            assert (await talker.next())["type"] == "turn.started"
            heard = [await talker.next() for _ in range(4)]
            await talker.send("interrupt", played_samples=3 * FRAME_SAMPLES)
            messages = await talker.until("turn.interrupted")
            report = messages[-1]
            sent = sum(len(packet) for packet in heard + packets_of(messages)) // 2
            assert report["samples_sent"] == sent
            assert report["played_ms"] == 240
            assert report["text_spoken"] + report["text_remaining"] == text
            done = await talker.next()
            assert (done["type"], done["reason"]) == ("turn.done", "interrupted")
            assert done["samples"] == sent
            await server.settled_engine()


async def test_without_a_position_what_was_heard_is_what_had_time_to_play() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text="x " * 30)
        began = time.monotonic()
        await talker.until("turn.started")
        received = 0
        while received <= 2 * 24_000:
            received += len(await talker.next()) // 2
        await asyncio.sleep(0.3)
        await talker.send("interrupt")
        report = (await talker.until("turn.interrupted"))[-1]
        assert report["samples_sent"] > 2 * 24_000
        assert 250 < report["played_ms"] <= (time.monotonic() - began) * 1_000


@pytest.mark.parametrize("position", [{}, {"played_ms": 240.0}])
async def test_a_second_interrupt_has_the_answer_of_the_first(position: dict[str, Any]) -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text="x " * 30)
        received = 0
        while received <= 24_000:
            message = await talker.next()
            received += len(message) // 2 if isinstance(message, bytes) else 0
        await talker.send("interrupt", **position)
        first = (await talker.until("turn.interrupted"))[-1]
        await talker.until("turn.done")
        await asyncio.sleep(0.2)
        await talker.send("interrupt")
        assert await talker.next() == first, "the listener has heard no more of it"


async def test_a_turn_heard_to_its_end_was_spoken_whole() -> None:
    text = "1 2 3 4 5 6 7 8 9 10."  # digits last longer than this engine's 80 ms each
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text=text, end=True)
        done = (await talker.until("turn.done"))[-1]
        await talker.send("interrupt", played_samples=done["samples"])
        report = await talker.next()
        assert report["type"] == "turn.interrupted"
        assert (report["text_spoken"], report["text_remaining"]) == (text, "")


async def test_a_turn_without_audio_is_never_started() -> None:
    async with speaking(engine=FakeEngineConfig(frames_per_token=0)) as server:
        async with server.talk() as talker:
            await talker.send("text", text="Hm.", end=True)
            messages = await talker.until("turn.done")
            assert [message["type"] for message in messages] == ["turn.done"]
            assert messages[0]["samples"] == 0


async def test_interrupts_at_any_moment_leave_no_byte_and_one_done() -> None:
    """Random moments: before the first token, mid-packet, after the last frame."""
    engine = FakeEngineConfig(step_seconds=0.001, frames_per_token=1)

    async def barge_in(server: Any, seed: int) -> None:
        rng = random.Random(seed)
        async with server.talk() as talker:
            for turn in range(12):
                turn_id = f"turn-{turn}"
                await talker.send("text", turn_id=turn_id, text="Words " * rng.randint(1, 8))
                if rng.random() < 0.5:
                    await talker.send("turn.end", turn_id=turn_id)
                await asyncio.sleep(rng.choice([0, 0, 0.001, 0.01, 0.05]) * rng.random() * 2)
                await talker.send("interrupt", turn_id=turn_id)
            await talker.send("text", turn_id="last", text="End.", end=True)
            check_brackets(await until_done(talker, "last"), 13)

    async with speaking(engine=engine) as server:
        await asyncio.gather(*(barge_in(server, seed) for seed in range(8)))
        await server.settled()


async def until_done(talker: Any, turn_id: str) -> list[Any]:
    messages: list[Any] = []
    while not messages or messages[-1].get("turn_id") != turn_id:
        messages += await talker.until("turn.done")
    return messages


def check_brackets(messages: list[Any], turns: int) -> None:
    """Audio only between turn.started and turn.done or turn.interrupted; one done a turn."""
    on_air: str | None = None
    over: set[str] = set()
    for message in messages:
        if isinstance(message, bytes):
            assert on_air is not None, "audio of no turn"
        elif message["type"] == "turn.started":
            assert message["turn_id"] not in over
            on_air = message["turn_id"]
        elif message["type"] == "turn.interrupted":
            on_air = None
            over.add(message["turn_id"])
        elif message["type"] == "turn.done":
            on_air = None
            over.add(message["turn_id"])
    ids = [done["turn_id"] for done in of_type(messages, "turn.done")]
    assert len(ids) == len(set(ids)) == turns


async def test_a_client_that_vanishes_frees_its_row(peer: Connecting) -> None:
    async with speaking(engine=FakeEngineConfig(step_seconds=0.005)) as server:
        for wait in (0, 0.01, 0.05, 0.1):
            client = await peer(server.port)
            await client.upgrade("/v1/tts")
            await client.frame(1, b'{"type":"text","text":"A long reply, not even ended."}')
            await asyncio.sleep(wait)
            client.abort()
        await server.settled()
        assert server.value("tts_sessions") == 0


async def test_a_client_that_closes_its_socket_in_a_turn_frees_its_row() -> None:
    async with speaking() as server:
        async with server.talk() as talker:
            await talker.send("text", text="A long reply, not even ended.")
            await talker.until("turn.started")
        await server.settled()
        assert server.value("tts_turns_total", reason="closed") == 1


async def test_session_close_speaks_the_rest_then_closes_with_1000() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text="Goodbye.")
        await talker.send("session.close")
        messages = await talker.rest()
        assert of_type(messages, "turn.done")[0]["reason"] == "complete"
        assert talker.socket.close_code == 1000
        await server.settled()
        assert server.value("tts_closed_total", code="1000") == 1


async def test_a_turn_whose_text_stops_coming_ends_as_idle() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(turn_idle_ms=200))
    async with speaking(config) as server, server.talk() as talker:
        await talker.send("text", text="And then")
        messages = await talker.until("turn.done")
        assert messages[-1]["reason"] == "idle"
        assert any(isinstance(m, dict) and m.get("code") == "turn_idle" for m in messages)


async def test_a_refused_turn_says_when_to_try_again_and_the_session_goes_on() -> None:
    scheduler = SchedulerConfig(slots=1, max_queue=1, queue_timeout=0.1)
    engine = FakeEngineConfig(slots=1, step_seconds=0.01)
    async with speaking(engine=engine, scheduler=scheduler) as server:
        async with server.talk() as first, server.talk() as second:
            await first.send("text", text="I hold the only slot, and ")
            await first.until("turn.started")
            await second.send("text", text="Me too.", end=True)
            messages = await second.until("turn.done")
            error = messages[-2]
            assert (error["code"], error["retryable"]) == ("overloaded", True)
            assert error["retry_after_ms"] > 0
            assert (messages[-1]["reason"], messages[-1]["samples"]) == ("error", 0)
            await first.send("interrupt")
            await first.until("turn.done")
            await second.send("text", text="Now.", end=True)
            assert (await second.until("turn.done"))[-1]["reason"] == "complete"
        assert server.value("tts_refused_total", reason="overloaded") == 1


async def test_a_voice_nobody_has_is_refused_with_the_list() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("session.start", voice="nobody")
        error = await talker.next()
        assert (error["code"], error["fatal"]) == ("bad_settings", False)
        assert "tenor" in error["message"]
        async with websockets.connect(server.running.websocket_url + "?voice=nobody") as socket:
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                while True:
                    await socket.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008


async def test_null_resets_a_setting_to_what_a_new_session_has() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("session.start")
        fresh = (await talker.next())["settings"]
        changed = {"voice": "tenor", "seed": 7, "lead_ms": 500, "lexicon": {"SQL": "sequel"}}
        sampling = {"temperature": 0.1, "top_k": 3}
        await talker.send("session.start", sampling=sampling, **changed)
        assert (await talker.next())["settings"] | fresh != fresh | changed
        await talker.send("session.start", sampling={"top_k": None}, **dict.fromkeys(changed))
        after = (await talker.next())["settings"]
        assert after == fresh | {"sampling": fresh["sampling"] | {"temperature": 0.1}}
        await talker.send("session.start", **dict.fromkeys(fresh))
        assert (await talker.next())["settings"] == fresh


async def test_a_row_that_fails_ends_alone() -> None:
    faults = Faults()
    async with speaking(engine=FakeEngineConfig(step_seconds=0.01), faults=faults) as server:
        async with server.talk() as bad, server.talk() as good:
            for talker in (bad, good):
                await talker.send("text", text="Some words to speak.", end=True)
                await talker.until("turn.started")
            first = next(iter(server.engine._rows))
            faults.numerics.add(first)
            ended = await asyncio.gather(bad.until("turn.done"), good.until("turn.done"))
            reasons = sorted(messages[-1]["reason"] for messages in ended)
            assert reasons == ["complete", "error"]


def explode_once(faults: Faults) -> None:
    """The next step of the engine raises."""

    def explode(plan: Any) -> None:
        faults.before_step = None
        raise RuntimeError("out of memory, injected")

    faults.before_step = explode


async def test_an_engine_step_that_raises_costs_no_turn() -> None:
    faults = Faults()
    async with speaking(faults=faults) as server, server.talk() as talker:
        explode_once(faults)
        await talker.send("text", text="Boom.", end=True)
        done = (await talker.until("turn.done"))[-1]
        assert (done["reason"], done["moves"]) == ("complete", 1)
        assert server.value("tts_moves_total") == 1


async def test_without_failover_it_ends_its_turns_with_a_retryable_error() -> None:
    faults = Faults()
    config = ServerConfig(port=0, failover_seconds=0.0)
    async with speaking(config=config, faults=faults) as server, server.talk() as talker:
        explode_once(faults)
        await talker.send("text", text="Boom.", end=True)
        messages = await talker.until("turn.done")
        assert messages[-2]["retryable"] is True
        assert messages[-1]["reason"] == "error"
        await talker.send("text", text="Again.", end=True)
        assert (await talker.until("turn.done"))[-1]["reason"] == "complete"


async def test_a_runaway_turn_is_stopped_by_a_guard_and_counted() -> None:
    faults = Faults()
    async with speaking(faults=faults) as server, server.talk() as talker:
        await talker.send("text", text="Hi.")
        await talker.until("turn.started")
        faults.runaway.update(server.engine._rows)
        await talker.send("turn.end")
        done = (await talker.until("turn.done"))[-1]
        assert done["reason"] == "guard_silence"
        assert server.value("tts_guard_stops_total", reason="guard_silence") == 1


async def test_utterances_of_different_sessions_never_share_a_name() -> None:
    async with speaking() as server:
        commands = server.spy_on_commands()
        for _ in range(3):
            async with server.talk() as talker:
                for _ in range(3):
                    await talker.send("text", text="x", end=True)
                    await talker.until("turn.done")
        names = [command.id for command in commands if isinstance(command, Open)]
        assert len(set(names)) == len(names) == 9


async def test_metrics_tell_what_the_script_did() -> None:
    async with speaking() as server, server.talk() as talker:
        dones = []
        for text in ("First.", "Second."):
            await talker.send("text", text=text, end=True)
            messages = await talker.until("turn.done")
            dones.append((messages[-1], len(packets_of(messages))))
        await talker.send("text", text="Third ")
        await talker.until("turn.started")
        await talker.send("interrupt")
        last = await talker.until("turn.done")
        dones.append((last[-1], 0))
        seconds = sum(done["samples"] for done, _ in dones) / 24_000
        assert server.value("tts_turns_total", reason="complete") == 2
        assert server.value("tts_turns_total", reason="interrupted") == 1
        assert server.value("tts_interrupts_total") == 1
        assert server.value("tts_ttfa_seconds_count") == 3
        assert server.value("tts_audio_seconds_total") == pytest.approx(seconds)
        assert server.value("tts_text_chars_total") == len("First.Second.Third ")
        assert server.value("tts_sessions") == 1
        assert server.value("tts_open_turns") == 0
        assert server.value("tts_engine_step_seconds_count") > 0


@pytest.mark.alone
async def test_packets_reach_the_listener_before_their_deadline() -> None:
    async with speaking(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        async with server.talk() as talker:
            await talker.send("text", text="A sentence of some length.", end=True)
            loop = asyncio.get_running_loop()
            arrivals: list[tuple[float, float]] = []
            while isinstance(message := await talker.next(), bytes) or (
                message["type"] != "turn.done"
            ):
                if isinstance(message, bytes):
                    arrivals.append((loop.time(), len(message) / 48_000))
            played_until = arrivals[0][0] + arrivals[0][1]
            for (_, _), (at, seconds) in pairwise(arrivals):
                assert at <= played_until
                played_until += seconds
            assert message["underruns"] == 0


async def test_effects_are_carried_out_one_after_another_and_never_inside_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where one leads to others: a turn without speech, and an interrupt, open the next."""
    depth, deepest, seen = 0, 0, list[str]()
    do = Connection._do

    def watched(connection: Connection, effect: Any) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        seen.append(type(effect).__name__)
        do(connection, effect)
        depth -= 1

    monkeypatch.setattr(Connection, "_do", watched)
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", turn_id="a", text="…", end=True)
        await talker.send("text", turn_id="b", text="Some words of speech. " * 20)
        await talker.send("text", turn_id="c", text="And more.", end=True)
        ends = [(await talker.until("turn.done"))[-1]]
        await talker.until("turn.started")
        await talker.send("interrupt", turn_id="b")
        ends += [(await talker.until("turn.done"))[-1] for _ in range(2)]
    assert [(end["turn_id"], end["reason"]) for end in ends] == [
        ("a", "complete"),
        ("b", "interrupted"),
        ("c", "complete"),
    ]
    assert deepest == 1 and seen.count("OpenTurn") == 3
