"""What a client may bring of a turn that was spoken on another socket."""

from __future__ import annotations

from base64 import b64encode

from realtime_tts.protocol import messages as m
from realtime_tts.protocol.effects import InterruptTurn, OpenTurn
from realtime_tts.protocol.parsing import encode
from realtime_tts.protocol.resuming import BroughtCodes
from realtime_tts.protocol.session import ServerInfo, Session
from realtime_tts.protocol.settings import Limits

LIMITS = Limits(max_turn_audio_ms=80_000)
MOST = 34_000


def brought(codes: BroughtCodes, size: int, now: float) -> tuple[int, bool]:
    """How many bytes of codes count of so many, and whether they were too many."""
    message = m.TurnCodes(turn_id="a", codes=(b64encode(bytes(size)).decode(),))
    assert codes.add(message) is None
    resume = codes.resume(m.TurnResume(turn_id="a", samples=0, text_chars=0), now)
    return len(resume.codes), resume.too_much


def test_a_session_brings_no_more_than_a_turn_has_and_what_became_of_time_since() -> None:
    codes = BroughtCodes(LIMITS)
    assert brought(codes, MOST, 100.0) == (MOST, False)
    assert brought(codes, 340, 100.5) == (0, True), "ten frames after half a second"
    assert brought(codes, 340, 101.0) == (340, False)
    assert brought(codes, 0, 101.0) == (0, False)
    assert brought(codes, MOST, 10_000.0) == (MOST, False)
    assert brought(codes, 34, 10_000.0) == (0, True), "what nobody used is not kept for later"


def test_turns_that_are_over_keep_none_of_the_codes_they_came_with() -> None:
    session = Session(ServerInfo("s", "server", "model", (), ()), limits=LIMITS)
    session.begin()
    codes = b64encode(bytes(340)).decode()
    for number in range(5):
        name = f"turn-{number}"
        message = encode(m.TurnCodes(turn_id=name, codes=(codes,)))
        assert session.receive(message, number) == []
        resume = m.TurnResume(turn_id=name, samples=1, text_chars=0)
        for effect in session.receive(encode(resume), number):
            assert not isinstance(effect, OpenTurn) or effect.resume is not None
    turns = session._turns._table
    assert [len(t.resume.codes) for t in turns.queue if t.resume] == [340] * 4
    assert turns.on_air is not None and turns.on_air.resume is None
    effects = session.receive('{"type": "interrupt"}', 9.0)
    assert any(isinstance(effect, InterruptTurn) for effect in effects)
    assert not [turn for turn in turns._known.values() if turn.resume]
