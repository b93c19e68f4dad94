import math
from array import array

import pytest

from realtime_tts.bench.feeds import FedReply, Feed
from realtime_tts.bench.heard import Heard, feed_result, judge
from realtime_tts.bench.observation import Observation
from realtime_tts.client import Word
from tests.bench.turns import turn_result
from tts_scheduler.report import Trace

RATE = 24_000
REPLY = "I am here. Come in now."
WORDS = ("I", " am", " here.", " Come", " in", " now.")


def tone(seconds: float, loud: bool = True) -> bytes:
    amplitude = 8_000 if loud else 0
    wave = (
        amplitude * math.sin(2 * math.pi * 150 * n / RATE) for n in range(round(seconds * RATE))
    )
    return array("h", map(round, wave)).tobytes()


def seen(*packets: tuple[float, bytes]) -> Observation:
    """A turn asked for at 100 s, with a word in every half second of its sound."""
    turn = Observation(len(REPLY), Trace(asked_at=100.0))
    turn.sound = bytearray()
    for at, data in packets:
        turn.packet(data, 100.0 + at)
    turn.words = tuple(
        Word(text=word, start_ms=500.0 * n, end_ms=500.0 * (n + 1)) for n, word in enumerate(WORDS)
    )
    turn.result = turn_result(samples=3 * RATE, held_ms=40.0, text_chars=len(REPLY))
    return turn


def text(*deltas: tuple[float, str], known: str = "") -> FedReply:
    assert "".join(delta for _, delta in deltas) == REPLY
    return FedReply(list(deltas), known)


STALLED = text((0.0, "I am here."), (4.0, " Come in now."), known="I am here.")
WHOLE = text((0.0, REPLY))


def test_speech_in_time_has_no_gap() -> None:
    heard = judge(REPLY, WHOLE, seen((0.1, tone(1.5)), (0.2, tone(1.5))))
    assert (heard.gaps, heard.cuts, heard.in_clauses, heard.known_late) == ((), 0, 0.0, None)
    assert (heard.first_sound, heard.ended) == pytest.approx((0.1, 3.1), abs=0.001)


def test_a_stall_that_cuts_a_known_word_makes_it_late() -> None:
    heard = judge(REPLY, STALLED, seen((0.1, tone(1.25)), (4.1, tone(1.75))))
    assert heard.gaps == ((1.25, pytest.approx(2.75), True),)
    assert heard.in_clauses == pytest.approx(2.75)
    assert heard.though_written == pytest.approx(2.75)  # "here." was there from the start
    assert heard.known_late == pytest.approx(2.75)


def test_a_stall_behind_the_known_words_costs_nothing_that_is_known() -> None:
    spoken = tone(1.4) + tone(0.1, loud=False)
    heard = judge(REPLY, STALLED, seen((0.1, spoken), (4.2, tone(1.5))))
    assert heard.gaps == ((1.5, pytest.approx(2.6), False),)
    assert (heard.in_clauses, heard.known_late) == (0.0, 0.0)


def test_silence_in_a_clause_is_told_apart_by_whether_its_text_was_there() -> None:
    late = text((0.0, "I am here. Come "), (5.0, "in now."), known="I am here. Come ")
    spoken = tone(1.9) + tone(0.1, loud=False)
    heard = judge(REPLY, late, seen((0.1, spoken), (5.3, tone(1.0))))
    assert heard.cuts == 0
    assert heard.in_clauses == pytest.approx(3.2)
    assert heard.though_written == pytest.approx(0.3)
    assert heard.known_late == 0.0


def test_a_reply_that_ends_before_its_text_is_cut_short() -> None:
    turn = seen((0.1, tone(2.0)))
    turn.words = turn.words[:4]
    heard = judge(REPLY, WHOLE, turn)
    assert heard.unspoken == " in now."
    assert feed_result(Feed(10.0), [heard], []).cut_short == 1
    turn.words += seen().words[4:]
    assert judge(REPLY, WHOLE, turn).unspoken == ""


def test_a_turn_that_failed_is_heard_of_by_its_error_alone() -> None:
    turn = seen((0.1, tone(0.5)))
    turn.error = "engine_restarted"
    assert judge(REPLY, WHOLE, turn) == Heard(REPLY, "engine_restarted")
    assert judge(REPLY, WHOLE, seen()).error == "no sound"


def test_the_same_replies_of_both_clients_are_compared() -> None:
    ours = [Heard("a", None, ended=2.0), Heard("b", None, ended=5.0), Heard("c", "lost")]
    theirs = [Heard("a", None, ended=3.0), Heard("b", None, ended=4.5), Heard("c", None, ended=1.0)]
    result = feed_result(Feed(10.0), ours, theirs)
    assert (result.turns, result.failed) == (3, 1)
    assert result.behind_sentences_ms is not None
    assert (result.behind_sentences_ms.p50, result.behind_sentences_ms.max) == (-250.0, 500.0)
    assert result.held_inside_word == 0


def test_what_the_server_counts_is_added_up() -> None:
    turn = seen((0.1, tone(3.0)))
    turn.result = turn_result(
        samples=3 * RATE, held_ms=40.0, text_chars=len(REPLY), held_inside_word=2
    )
    heard = judge(REPLY, WHOLE, turn)
    assert feed_result(Feed(10.0), [heard, heard], []).held_inside_word == 4
