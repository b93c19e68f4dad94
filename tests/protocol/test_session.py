from __future__ import annotations

import json
from typing import Any

import pytest

from realtime_tts.errors import RequestError
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.effects import (
    Close,
    Effect,
    EndText,
    FeedText,
    FlushText,
    HeardReport,
    InterruptTurn,
    OpenTurn,
    ReportHeard,
    ReportPlayed,
    Send,
    TurnFailure,
    TurnStats,
)
from realtime_tts.protocol.session import ServerInfo, Session
from realtime_tts.protocol.settings import Limits, SessionSettings

INFO = ServerInfo("s-1", "realtime-tts 0.1.0", "demo-voice", ("ava", "ben"), ("english",))
SETTINGS = SessionSettings()
REPORT = HeardReport(2_048, 80.04, "a", "b")
OVERLOADED = TurnFailure("overloaded", "no capacity now", retryable=True, retry_after_ms=500)


def session(**limits: int) -> Session:
    made = Session(INFO, limits=Limits(**limits))
    made.begin()
    return made


def tell(to: Session, kind: str, now: float = 0.0, **fields: Any) -> list[Effect]:
    return to.receive(json.dumps({"type": kind, **fields}), now)


def sent(effects: list[Effect]) -> list[tuple[Any, str | None]]:
    """(code, reason or type; turn_id) of every message sent."""
    short: list[tuple[Any, str | None]] = []
    for effect in effects:
        if isinstance(effect, Send):
            message = effect.message
            what = getattr(
                message, "code", getattr(message, "reason", message.__struct_config__.tag)
            )
            short.append((what, getattr(message, "turn_id", None)))
    return short


def finish(of: Session, turn_id: str, reason: str = "complete") -> list[Effect]:
    return of.turn_finished(turn_id, reason, TurnStats(samples=1_920, ttfa_ms=80.0))


# The session


def test_it_begins_with_ready_that_echoes_settings_and_limits() -> None:
    made = Session(INFO, SessionSettings(voice="ava"), Limits(max_queued_turns=3))
    (send,) = made.begin("seed=7")
    assert isinstance(send, Send) and isinstance(send.message, m.Ready)
    ready = send.message
    assert ready.session_id == "s-1" and ready.voices == ("ava", "ben")
    assert ready.settings == made.settings == SessionSettings(voice="ava", seed=7)
    assert ready.limits == Limits(max_queued_turns=3)
    assert (ready.protocol, ready.sample_rate) == ("realtime-tts.v1", 24_000)
    assert (ready.encoding, ready.packet_bytes) == ("pcm_s16le", 4_096)


@pytest.mark.parametrize("query", ["seed=x", "lead_ms=999999", "voice=carl"])
def test_bad_settings_in_the_url_are_fatal(query: str) -> None:
    made = Session(INFO, check=only_known_voices)
    error, close = made.begin(query)
    assert isinstance(error, Send) and isinstance(error.message, m.ErrorMessage)
    assert (error.message.code, error.message.fatal) == ("bad_settings", True)
    assert isinstance(close, Close) and close.code == 1008
    assert close.reason.startswith("bad_settings: ")
    assert made.receive('{"type": "text", "text": "a"}', 0.0) == []


def only_known_voices(settings: SessionSettings) -> None:
    if settings.voice not in (None, "ava", "ben"):
        raise RequestError(f"no voice {settings.voice!r}; known are ava, ben")


def test_a_typing_slip_in_the_url_is_warned_of() -> None:
    assert sent(Session(INFO).begin("voise=ava")) == [("ready", None), ("unknown_field", None)]


def test_settings_change_for_turns_that_begin_later() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    tell(of, "text", text="b", turn_id="b", end=True)
    (ready,) = tell(of, "session.start", voice="ben")
    assert isinstance(ready, Send) and isinstance(ready.message, m.Ready)
    assert ready.message.settings == SessionSettings(voice="ben")
    tell(of, "text", text="c", turn_id="c")
    assert OpenTurn("b", SETTINGS) in finish(of, "a")
    assert OpenTurn("c", SessionSettings(voice="ben")) in finish(of, "b")


def test_bad_settings_change_nothing_and_are_not_fatal() -> None:
    of = Session(INFO, check=only_known_voices)
    of.begin()
    for fields in ({"voice": "carl"}, {"lead_ms": 999_999}, {"instructions": "x" * 2_001}):
        (error,) = tell(of, "session.start", **fields)
        assert isinstance(error, Send) and isinstance(error.message, m.ErrorMessage)
        assert (error.message.code, error.message.fatal) == ("bad_settings", False)
    assert of.settings == SETTINGS


def test_an_unknown_field_is_warned_of_once_and_the_message_is_taken() -> None:
    of = session()
    assert sent(tell(of, "text", text="a", voise=1)) == [("unknown_field", None)]
    assert tell(of, "text", text="b", voise=2) == [FeedText("t1", "b")]
    many = {f"x{number}": 1 for number in range(4)}
    warned = sum(len(sent(tell(of, kind, **many))) for kind in ("text", "flush", "interrupt"))
    assert 0 < warned < 20


def test_warnings_of_unknown_fields_end_somewhere() -> None:
    of = session()
    tell(of, "text", text="a")
    warned = sum(len(sent(tell(of, "flush", **{f"x{number}": 1}))) for number in range(200))
    assert warned == 64


# Text


def test_a_text_opens_a_turn_and_feeds_it() -> None:
    of = session()
    assert tell(of, "text", text="Good ") == [OpenTurn("t1", SETTINGS), FeedText("t1", "Good ")]
    assert tell(of, "text", text="morning.") == [FeedText("t1", "morning.")]
    assert tell(of, "flush") == [FlushText("t1")]
    assert tell(of, "turn.end") == [EndText("t1")]
    assert of.on_air == "t1"


def test_a_text_with_end_does_both_in_one_step() -> None:
    assert tell(session(), "text", text="Hi.", turn_id="a", end=True) == [
        OpenTurn("a", SETTINGS),
        FeedText("a", "Hi."),
        EndText("a"),
    ]


def test_an_empty_text_opens_a_turn_and_feeds_nothing() -> None:
    assert tell(session(), "text", text="") == [OpenTurn("t1", SETTINGS)]


def test_text_without_id_goes_to_the_newest_turn_that_is_open() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    tell(of, "text", text="b", turn_id="b", end=True)
    assert tell(of, "text", text="a2") == [FeedText("a", "a2")]
    tell(of, "turn.end")
    assert tell(of, "text", text="c") == []
    assert of.queued == ("b", "t1")


def test_later_turns_wait_with_their_text_and_follow_in_order() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    for name in "bc":
        assert tell(of, "text", text=name, turn_id=name) == []
        assert tell(of, "flush", turn_id=name) == []
        assert tell(of, "text", text=name, turn_id=name, end=name == "b") == []
    assert (of.on_air, of.queued) == ("a", ("b", "c"))
    done, *opened = finish(of, "a")
    assert sent([done]) == [("complete", "a")]
    assert opened == [
        OpenTurn("b", SETTINGS),
        FeedText("b", "b"),
        FlushText("b"),
        FeedText("b", "b"),
        EndText("b"),
    ]
    assert EndText("c") not in finish(of, "b")
    assert tell(of, "turn.end") == [EndText("c")]


def test_text_after_the_end_is_an_error_and_not_fatal() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a", end=True)
    assert sent(tell(of, "text", text="x", turn_id="a")) == [("turn_ended", "a")]
    finish(of, "a")
    assert sent(tell(of, "text", text="x", turn_id="a")) == [("turn_ended", "a")], "id used again"
    assert of.on_air is None


@pytest.mark.parametrize("kind", ["flush", "turn.end"])
def test_ending_and_flushing_tell_when_there_is_nothing_to_do(kind: str) -> None:
    of = session()
    assert sent(tell(of, kind)) == [("no_open_turn", None)]
    assert sent(tell(of, kind, turn_id="x")) == [("unknown_turn", "x")]
    tell(of, "text", text="a", turn_id="a", end=True)
    assert sent(tell(of, kind, turn_id="a")) == [("turn_already_ended", "a")]
    finish(of, "a")
    assert sent(tell(of, kind, turn_id="a")) == [("turn_already_ended", "a")]


def test_late_text_is_dropped_and_never_begins_another_turn() -> None:
    of = session()
    tell(of, "text", text="a")
    assert sent(of.turn_failed("t1", OVERLOADED, TurnStats())) == [
        ("overloaded", "t1"),
        ("error", "t1"),
    ]
    assert sent(tell(of, "text", text="b")) == [("late_text", "t1")]
    assert tell(of, "text", text="c") == [], "said once"
    assert tell(of, "flush") == []
    assert tell(of, "turn.end") == []
    assert tell(of, "text", text="d") == [OpenTurn("t2", SETTINGS), FeedText("t2", "d")]


@pytest.mark.parametrize(
    "end", [{"kind": "interrupt"}, {"kind": "interrupt", "turn_id": "t1"}, {"kind": "turn.end"}]
)
def test_late_text_ends_however_the_client_ends_it(end: dict[str, Any]) -> None:
    of = session()
    tell(of, "text", text="a")
    finish(of, "t1", "guard_silence")
    tell(of, **end)
    assert OpenTurn("t2", SETTINGS) in tell(of, "text", text="b")


# Limits


def test_a_text_beyond_its_limit_is_refused_to_the_character() -> None:
    of = session(max_text_chars=5)
    assert FeedText("a", "12345") in tell(of, "text", text="12345", turn_id="a")
    assert sent(tell(of, "text", text="123456", turn_id="a")) == [("text_too_long", "a")]
    assert of.on_air == "a"


def test_a_message_beyond_its_limit_is_not_taken() -> None:
    of = session(max_message_bytes=100)
    assert sent(tell(of, "session.start", instructions="x" * 100)) == [("too_large", None)]
    assert sent(of.receive("[" * 101, 0.0)) == [("too_large", None)]
    assert of.on_air is None


def test_a_turn_with_a_text_in_too_large_a_message_takes_no_more_so_that_there_is_no_hole() -> None:
    of = session(max_message_bytes=100)
    tell(of, "text", text="The beginning ", turn_id="a")
    assert sent(tell(of, "text", text="x" * 100, turn_id=None)) == [("too_large", "a")]
    assert sent(tell(of, "text", text="and the", turn_id="a")) == [("turn_too_long", "a")]
    last = tell(of, "text", text="x" * 100, turn_id="a", end=True)
    assert sent(last) == [("too_large", "a")] and EndText("a") in last
    assert sent(tell(of, "text", text="x" * 100, turn_id="a")) == [("turn_ended", "a")]


def test_a_turn_that_begins_with_too_large_a_message_is_done_at_once() -> None:
    of = session(max_message_bytes=100)
    refused = tell(of, "text", text="x" * 100)
    assert sent(refused) == [("too_large", "t1"), ("error", "t1")]
    assert sent(tell(of, "text", text="the end.", end=True)) == [("late_text", "t1")]
    assert OpenTurn("t2", SETTINGS) in tell(of, "text", text="b")


def test_texts_in_messages_that_are_too_large_count_as_bad_ones() -> None:
    of = session(max_message_bytes=100, max_bad_messages=2)
    tell(of, "text", text="x" * 100, end=True)
    assert ("too_many_bad_messages", None) in sent(tell(of, "text", text="x" * 100, end=True))


def test_a_turn_beyond_its_limit_takes_no_more_text_so_that_there_is_no_hole() -> None:
    of = session(max_turn_chars=10)
    tell(of, "text", text="123456789", turn_id="a")
    assert sent(tell(of, "text", text="xy", turn_id="a")) == [("turn_too_long", "a")]
    assert sent(tell(of, "text", text="x", turn_id="a")) == [("turn_too_long", "a")]
    assert EndText("a") in tell(of, "text", text="x", turn_id="a", end=True)
    (done,) = finish(of, "a")
    assert isinstance(done, Send) and isinstance(done.message, m.TurnDone)
    assert done.message.text_chars == 9


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize(
    ("limits", "code"),
    [({"max_text_chars": 2}, "text_too_long"), ({"max_turn_chars": 2}, "turn_too_long")],
)
def test_a_turn_whose_first_text_is_refused_is_done_at_once(
    limits: dict[str, int], code: str, end: bool
) -> None:
    of = session(**limits)
    assert sent(tell(of, "text", text="abc", turn_id="a", end=end)) == [(code, "a"), ("error", "a")]
    assert of.on_air is None
    again = "turn_ended" if end else "late_text"
    assert sent(tell(of, "text", text="ab", turn_id="a")) == [(again, "a")]


def test_a_full_queue_refuses_the_turn_and_says_so_once() -> None:
    of = session(max_queued_turns=2)
    for name in "abc":
        assert sent(tell(of, "text", text=name, turn_id=name)) == []
    refused = tell(of, "text", text="d", turn_id="d")
    assert sent(refused) == [("queue_full", "d"), ("error", "d")]
    assert isinstance(refused[0], Send) and isinstance(refused[0].message, m.ErrorMessage)
    assert refused[0].message.retryable
    assert refused[0].message.message == "as many turns wait as may (2)"
    assert sent(tell(of, "text", text="d", turn_id="d")) == [("late_text", "d")]
    finish(of, "a")
    assert sent(tell(of, "text", text="e", turn_id="e")) == []


def test_ten_bad_messages_in_a_minute_end_the_session() -> None:
    of = session()
    for number in range(9):
        assert sent(of.receive("{", number)) == [("bad_json", None)]
    effects = of.receive(b"x", 9.0)
    assert sent(effects) == [("binary_not_allowed", None), ("too_many_bad_messages", None)]
    assert isinstance(effects[-1], Close) and effects[-1].code == 1008


def test_bad_messages_far_apart_and_refused_turns_do_not_end_it() -> None:
    of = session()
    for number in range(50):
        now = number * 10.0
        assert sent(of.receive("{", now)) == [("bad_json", None)]
        assert sent(tell(of, "text", now, text="x" * 20_000, turn_id=f"a{number}", end=True))
        assert sent(tell(of, "flush", now, turn_id="nobody")) == [("unknown_turn", "nobody")]
    assert tell(of, "text", 500.0, text="a") != []


def test_a_flood_of_messages_ends_the_session() -> None:
    of = session(message_burst=5, messages_per_second=1)
    tell(of, "text", text="a", turn_id="a")
    for _ in range(4):
        assert sent(tell(of, "flush")) == []
    effects = tell(of, "flush")
    assert sent(effects) == [("rate_limited", None)]
    assert effects[-1] == InterruptTurn("a", None)
    *_, done, close = of.turn_interrupted("a", REPORT, TurnStats())
    assert sent([done]) == [("closed", "a")]
    assert isinstance(close, Close) and close.code == 1008


# Interrupting


@pytest.mark.parametrize("started", [False, True])
def test_the_turn_on_the_air_is_interrupted_before_and_after_its_first_audio(started: bool) -> None:
    of = session()
    tell(of, "text", text="ab", turn_id="a")
    if started:
        assert sent(of.turn_started("a", "streaming")) == [("turn.started", "a")]
    assert tell(of, "interrupt", turn_id="a", played_samples=7) == [InterruptTurn("a", 7)]
    assert tell(of, "interrupt", turn_id="a") == [], "the answer is on its way"
    assert of.turn_started("a", "streaming") == [], "nothing of it may sound any more"
    told, done = of.turn_interrupted("a", REPORT, TurnStats(samples=2_048, ttfa_ms=81.26))
    assert isinstance(told, Send) and told.message == m.TurnInterrupted(
        turn_id="a", samples_sent=2_048, played_ms=80.0, text_spoken="a", text_remaining="b"
    )
    assert isinstance(done, Send) and done.message == m.TurnDone(
        turn_id="a",
        reason="interrupted",
        samples=2_048,
        ttfa_ms=81.3,
        underruns=0,
        held_ms=0.0,
        text_chars=2,
    )


@pytest.mark.parametrize(
    ("position", "samples"),
    [
        ({}, None),
        ({"played_ms": 0}, 0),
        ({"played_ms": 80.04}, 1_921),
        ({"played_samples": 5}, 5),
        ({"played_samples": 5, "played_ms": 80}, 5),
    ],
)
def test_a_played_position_is_told_in_samples(
    position: dict[str, float], samples: int | None
) -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    if position:
        assert tell(of, "played", **position) == [ReportPlayed("a", samples or 0)]
    assert tell(of, "interrupt", **position) == [InterruptTurn("a", samples)]


def test_a_waiting_turn_is_interrupted_with_all_its_text_remaining() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    tell(of, "text", text="b", turn_id="b")
    tell(of, "flush", turn_id="b")
    tell(of, "text", text="c", turn_id="b")
    told, done = tell(of, "interrupt", turn_id="b", played_ms=500)
    assert isinstance(told, Send) and told.message == m.TurnInterrupted(
        turn_id="b", samples_sent=0, played_ms=0.0, text_spoken="", text_remaining="bc"
    )
    assert sent([done]) == [("interrupted", "b")]
    assert (of.on_air, of.queued) == ("a", ())


def test_an_interrupt_without_id_ends_everything_and_opens_nothing() -> None:
    of = session()
    for name in "abc":
        tell(of, "text", text=name, turn_id=name)
    effects = tell(of, "interrupt")
    assert sent(effects) == [
        ("turn.interrupted", "b"),
        ("interrupted", "b"),
        ("turn.interrupted", "c"),
        ("interrupted", "c"),
    ]
    assert effects[-1] == InterruptTurn("a", None)
    assert sent(of.turn_interrupted("a", REPORT, TurnStats())) == [
        ("turn.interrupted", "a"),
        ("interrupted", "a"),
    ]
    assert (of.on_air, of.queued) == (None, ())


def test_text_right_after_an_interrupt_waits_until_the_air_is_free() -> None:
    of = session()
    tell(of, "text", text="a")
    tell(of, "interrupt")
    assert tell(of, "text", text="b") == []
    *_, opened, fed = of.turn_interrupted("t1", REPORT, TurnStats())
    assert (opened, fed) == (OpenTurn("t2", SETTINGS), FeedText("t2", "b"))


@pytest.mark.parametrize("turn_id", [{}, {"turn_id": "a"}])
def test_a_turn_that_is_done_is_reported_without_a_second_done(turn_id: dict[str, Any]) -> None:
    of = session()
    tell(of, "text", text="ab", turn_id="a", end=True)
    finish(of, "a")
    assert tell(of, "interrupt", played_samples=9, **turn_id) == [ReportHeard("a", 9)]
    assert sent(of.turn_heard("a", REPORT)) == [("turn.interrupted", "a")]
    assert sent(of.turn_heard("a", None)) == [("turn_already_done", "a")]


def test_interrupting_nothing_is_a_warning_and_interrupting_nobody_an_error() -> None:
    of = session()
    assert sent(tell(of, "interrupt")) == [("no_active_turn", None)]
    assert sent(tell(of, "interrupt", turn_id="x")) == [("unknown_turn", "x")]
    assert sent(tell(of, "played", played_ms=1)) == [("no_active_turn", None)]
    assert sent(tell(of, "played", turn_id="x", played_ms=1)) == [("unknown_turn", "x")]


def test_played_reports_go_to_the_turn_that_sounds() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a", end=True)
    tell(of, "text", text="b", turn_id="b", end=True)
    assert tell(of, "played", turn_id="b", played_samples=1) == [], "nothing of it was sent"
    finish(of, "a")
    assert tell(of, "played", turn_id="a", played_samples=2) == [ReportPlayed("a", 2)]
    assert tell(of, "played", played_samples=3) == [ReportPlayed("b", 3)]
    finish(of, "b")
    assert tell(of, "played", played_samples=4) == [ReportPlayed("b", 4)]


# Done, exactly once


def test_reports_about_a_turn_that_is_over_change_nothing() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a", end=True)
    assert sent(finish(of, "a")) == [("complete", "a")]
    assert finish(of, "a") == []
    assert of.turn_failed("a", OVERLOADED, TurnStats()) == []
    assert of.turn_interrupted("a", REPORT, TurnStats()) == []
    assert of.turn_started("a", "streaming") == []


def test_a_turn_that_ends_by_itself_while_it_is_interrupted_is_done_once() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a", end=True)
    tell(of, "interrupt")
    assert sent(finish(of, "a")) == [("complete", "a")]
    assert of.turn_interrupted("a", REPORT, TurnStats()) == []


def test_the_connection_can_warn() -> None:
    (warning,) = session().warn("no_speakable_text", "nothing to speak", "a")
    assert isinstance(warning, Send) and warning.message == m.WarningMessage(
        code="no_speakable_text", message="nothing to speak", turn_id="a"
    )


# Time


def test_a_turn_without_text_for_too_long_is_ended_and_done_as_idle() -> None:
    of = session(turn_idle_ms=60_000)
    assert of.next_deadline() is None
    tell(of, "text", 100.0, text="a", turn_id="a")
    assert of.next_deadline() == 160.0
    tell(of, "flush", 130.0)
    assert of.next_deadline() == 190.0
    assert of.poll(189.0) == []
    warning, end = of.poll(190.0)
    assert sent([warning]) == [("turn_idle", "a")]
    assert end == EndText("a")
    assert of.next_deadline() is None and of.poll(500.0) == []
    assert sent(finish(of, "a")) == [("idle", "a")]


def test_an_idle_turn_that_ends_otherwise_keeps_its_own_reason() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    of.poll(60.0)
    assert sent(finish(of, "a", "max_length")) == [("max_length", "a")]


def test_a_waiting_turn_idles_too() -> None:
    of = session()
    tell(of, "text", 0.0, text="a", turn_id="a", end=True)
    tell(of, "text", 1.0, text="b", turn_id="b")
    assert sent(of.poll(61.0)) == [("turn_idle", "b")]
    assert finish(of, "a")[-1] == EndText("b")
    assert sent(finish(of, "b")) == [("idle", "b")]


def test_late_input_is_forgotten_in_silence() -> None:
    of = session()
    tell(of, "text", text="a")
    of.turn_failed("t1", OVERLOADED, TurnStats())
    assert of.next_deadline() == 60.0
    assert of.poll(60.0) == []
    assert OpenTurn("t2", SETTINGS) in tell(of, "text", 61.0, text="b")


# Endings


def test_session_close_speaks_what_was_sent_and_then_closes() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    tell(of, "text", text="b", turn_id="b")
    assert tell(of, "session.close") == [EndText("a")]
    assert sent(tell(of, "text", text="c", turn_id="c")) == [
        ("session_closing", "c"),
        ("error", "c"),
    ]
    assert sent(tell(of, "text", text="a", turn_id="a")) == [("turn_ended", "a")]
    assert finish(of, "a")[1:] == [OpenTurn("b", SETTINGS), FeedText("b", "b"), EndText("b")]
    done, close = finish(of, "b")
    assert sent([done]) == [("complete", "b")]
    assert close == Close(1000, "done")
    assert tell(of, "text", text="d") == []


def test_session_close_without_turns_closes_at_once_and_once() -> None:
    of = session()
    assert tell(of, "session.close") == [Close(1000, "done")]
    assert tell(of, "session.close") == []
    assert of.drain() == [] and of.fail("x", "y", m.CloseCode.INTERNAL) == []


def test_an_interrupt_after_session_close_hurries_it() -> None:
    of = session()
    for name in "ab":
        tell(of, "text", text=name, turn_id=name)
    tell(of, "session.close")
    effects = tell(of, "interrupt")
    assert effects[-1] == InterruptTurn("a", None), "what answers it may be the close"
    assert of.turn_interrupted("a", REPORT, TurnStats())[-1] == Close(1000, "done")


def test_draining_finishes_turns_begun_and_refuses_new_ones() -> None:
    of = session()
    tell(of, "text", text="a", turn_id="a")
    assert sent(of.drain()) == [("going_away", None)]
    assert of.drain() == []
    assert tell(of, "text", text="2", turn_id="a") == [FeedText("a", "2")]
    refused = tell(of, "text", text="b", turn_id="b", end=True)
    assert sent(refused) == [("going_away", "b"), ("error", "b")]
    tell(of, "turn.end", turn_id="a")
    close = finish(of, "a")[-1]
    assert isinstance(close, Close) and close.code == 1001


def test_draining_an_idle_session_closes_it() -> None:
    warning, close = session().drain()
    assert sent([warning]) == [("going_away", None)]
    assert isinstance(close, Close) and close.code == 1001


def test_a_failed_session_ends_every_turn_and_then_closes() -> None:
    of = session()
    for name in "abc":
        tell(of, "text", text=name, turn_id=name)
    error, *rest = of.fail("going_away", "x" * 300, m.CloseCode.GOING_AWAY)
    assert isinstance(error, Send) and isinstance(error.message, m.ErrorMessage)
    assert error.message.fatal and error.message.retryable
    assert sent(rest) == [("closed", "b"), ("closed", "c")]
    assert rest[-1] == InterruptTurn("a", None)
    assert tell(of, "text", text="d") == [] and of.next_deadline() is None
    done, close = of.turn_interrupted("a", REPORT, TurnStats())
    assert sent([done]) == [("closed", "a")]
    assert isinstance(close, Close) and close.code == 1001
    assert len(close.reason.encode()) <= 123 and close.reason.startswith("going_away: ")


def test_a_lost_socket_stops_the_turn_on_the_air_and_sends_nothing() -> None:
    of = session()
    for name in "ab":
        tell(of, "text", text=name, turn_id=name)
    assert of.closed() == [InterruptTurn("a", None)]
    assert of.closed() == []
    assert of.turn_interrupted("a", REPORT, TurnStats()) == []
    assert of.turn_heard("a", REPORT) == [] and of.warn("x", "y") == []
    assert tell(of, "text", text="c") == [] and of.poll(1e9) == []
    assert of.next_deadline() is None
