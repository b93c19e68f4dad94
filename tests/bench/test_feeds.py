import pytest

from realtime_tts.bench.deltas import DeltaTiming
from realtime_tts.bench.feeds import (
    FEEDS,
    REPLIES,
    STALLS,
    TWO_SENTENCES,
    Feed,
    fed,
    stall_place,
)
from realtime_tts.bench.sentence_client import whole_sentences
from realtime_tts.bench.settings import BenchSettings

SETTINGS = BenchSettings(server="ws://127.0.0.1:1", timing=DeltaTiming(jitter=0.0))
TWO = "It is open. Breakfast begins at seven."


@pytest.mark.parametrize("feed", FEEDS["all"][0], ids=lambda feed: feed.name)
@pytest.mark.parametrize("reply", REPLIES)
def test_a_feed_brings_the_whole_reply_and_waits_once_where_it_stalls(
    reply: str, feed: Feed
) -> None:
    text = fed(reply, feed, SETTINGS)
    if text is None:
        assert feed.stall == "sentence"
        assert reply.count(".") == 1
        return
    assert "".join(delta for _, delta in text.deltas) == reply
    waits = [wait for wait, _ in text.deltas[1:]]
    assert waits.count(feed.seconds) == bool(feed.stall)
    gap = 1 / feed.tokens_per_second
    assert all(wait == pytest.approx(gap) for wait in waits if wait != feed.seconds)
    assert reply.startswith(text.known)
    if feed.stall:
        before = [delta for _, delta in text.deltas][: waits.index(feed.seconds) + 1]
        assert "".join(before) == text.known


@pytest.mark.parametrize(
    ("reply", "where", "known"),
    [
        (TWO, "sentence", "It is open."),
        (TWO, "clause", "It is open. Breakfast"),
        (TWO, "word", "It is open. Brea"),
        ("Yes, of course I can.", "clause", "Yes, of"),
        ("Sure, let me look that up.", "word", "Sure, let me look th"),
        ("Call 555-1234 tomorrow.", "word", "Call 555-1234 tomo"),
    ],
)
def test_a_stall_is_behind_a_sentence_in_a_clause_or_in_a_word(
    reply: str, where: str, known: str
) -> None:
    assert reply[: stall_place(reply, where)] == known


def test_a_reply_may_have_no_place_for_a_stall() -> None:
    assert stall_place("One sentence.", "sentence") is None
    assert stall_place("Yes, sure.", "clause") is None


def test_the_quick_set_has_every_kind_of_feed() -> None:
    feeds, replies = FEEDS["quick"]
    assert {feed.stall for feed in feeds} == {feed.stall for feed in STALLS} | {""}
    assert {feed.seconds for feed in feeds if feed.stall} == {4.0}
    assert set(replies) < set(REPLIES)


def test_replies_of_two_sentences_are_two_that_the_sentence_client_waits_for() -> None:
    """The first of each, with more and more words."""
    firsts = [whole_sentences(reply)[0] for reply in TWO_SENTENCES]
    assert [[len(first.split()) for first in each] for each in firsts] == [
        [6],
        [9],
        [14],
        [18],
        [27],
    ]
