"""Eighty thousand random steps: the Session against a model that does everything the plain way.

A program is a string of bytes, two for each step: what happens, and to whom. `World` plays the
client and the connection at once. It obeys the effects the way a connection does, asserting that
each is legal at that moment, and keeps its own simple books about what must have come of it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

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
from realtime_tts.protocol.resuming import FRAME_BYTES, FRAME_MS
from realtime_tts.protocol.session import ServerInfo, Session
from realtime_tts.protocol.settings import Limits
from tests.properties import examples

PROGRAMS, STEPS = 400, 200
LIMITS = Limits(max_queued_turns=3, max_text_chars=6, max_turn_chars=20, max_bad_messages=4)
TEXTS = ["", "x", "yz", "hello", "toolong"]
DONE_BY_ENGINE = ["complete", "guard_silence", "max_length"]


@dataclass
class Known:
    """What the model knows of a turn."""

    text: str = ""  # taken from the client
    fed: str = ""  # given to the connection
    ended: bool = False  # the client ended its text, or it idled
    full: bool = False
    told_end: bool = False
    stopping: bool = False
    opened: bool = False
    resumed: bool = False
    done: str = ""
    last_input: float = 0.0


class World:
    def __init__(self, eager: bool) -> None:
        self.eager = eager  # answer while carrying out, not later
        self.session = Session(ServerInfo("s", "server", "model", (), ()), limits=LIMITS)
        self.turns: dict[str, Known] = {}  # in the order in which they began
        self.on_air: str | None = None
        self.to_answer: list[InterruptTurn | ReportHeard] = []
        self.refusing = False  # draining or session.close
        self.over = False  # fatal error or Close
        self.gone = False  # the socket
        self.closes = 0
        self.brought = 0  # bytes of codes that came to an engine
        self.now = 0.0
        self.obey(self.session.begin())

    def known(self, turn_id: str) -> Known:
        """The model's books: a turn that the server named is entered when it is first heard of."""
        return self.turns[turn_id]

    # The connection: every effect must be legal when it comes

    def obey(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert not self.closes, "nothing follows Close"
            match effect:
                case Send(message):
                    assert not self.gone
                    self.hear(message)
                case OpenTurn(turn_id, _, resume):
                    assert self.on_air is None and not self.known(turn_id).opened
                    waiting = [i for i, t in self.turns.items() if not (t.done or t.opened)]
                    assert waiting[0] == turn_id, "turns come in the order in which they began"
                    self.on_air, self.known(turn_id).opened = turn_id, True
                    assert (resume is not None) == self.known(turn_id).resumed
                    self.brought += 0 if resume is None else len(resume.codes)
                    heard = FRAME_BYTES * (LIMITS.max_turn_audio_ms + self.now * 1000) / FRAME_MS
                    assert self.brought <= heard, "an engine computes no more than was heard"
                case FeedText(turn_id, text):
                    assert text
                    self.sounding(turn_id).fed += text
                case FlushText(turn_id):
                    self.sounding(turn_id)
                case EndText(turn_id):
                    self.sounding(turn_id).told_end = True
                    if self.eager and not self.known(turn_id).fed:  # nothing to speak
                        self.obey(self.session.turn_finished(turn_id, "complete", TurnStats()))
                case InterruptTurn(turn_id):
                    assert turn_id == self.on_air and not self.known(turn_id).stopping
                    self.known(turn_id).stopping = True
                    self.to_answer.append(effect)
                case ReportHeard(turn_id):
                    assert self.known(turn_id).done
                    self.to_answer.append(effect)
                case ReportPlayed(turn_id):
                    assert self.known(turn_id).done or self.known(turn_id).opened
                case Close():
                    assert self.on_air is None and all(turn.done for turn in self.turns.values())
                    self.closes += 1
                    self.over = True
            if self.eager and self.to_answer:
                self.answer(self.to_answer.pop(), 0, TurnStats())

    def sounding(self, turn_id: str) -> Known:
        turn = self.known(turn_id)
        assert turn_id == self.on_air and not turn.stopping and not turn.told_end
        return turn

    def hear(self, message: m.ServerMessage) -> None:
        match message:
            case m.TurnDone(turn_id=turn_id, reason=reason, text_chars=chars):
                turn = self.known(turn_id)
                assert not turn.done, "exactly once"
                assert chars == len(turn.text)
                turn.done = reason
                if turn_id == self.on_air:
                    self.on_air = None
            case m.TurnStarted(turn_id=turn_id):
                assert turn_id == self.on_air and not self.known(turn_id).stopping
            case m.TurnInterrupted(turn_id=turn_id, text_spoken=spoken, text_remaining=rest):
                assert self.known(turn_id).opened or spoken + rest == self.known(turn_id).text
            case m.ErrorMessage(fatal=True):
                self.over = True

    # The client

    def newest_open(self) -> str | None:
        return next((i for i, t in reversed(self.turns.items()) if not t.ended), None)

    def text(self, name: str | None, text: str, end: bool) -> None:
        target = name or self.newest_open()
        if not self.over:
            if target is None:
                target = f"t{sum(i[0] == 't' for i in self.turns) + 1}"
            self.expect_text(target, text, end)
        self.tell("text", name, text=text, end=end)

    def expect_text(self, target: str, text: str, end: bool) -> None:
        if target not in self.turns:
            waiting = sum(not (t.done or t.opened) for t in self.turns.values())
            refused = self.refusing or waiting >= LIMITS.max_queued_turns
            self.turns[target] = Known(full=refused or len(text) > LIMITS.max_text_chars)
        turn = self.turns[target]
        if turn.ended:
            return
        turn.last_input = self.now
        too_long = len(text) > LIMITS.max_text_chars
        turn.full |= too_long or len(turn.text + text) > LIMITS.max_turn_chars
        if not (turn.full or turn.done):
            turn.text += text
        turn.ended = end

    def codes(self, name: str | None, frames: int) -> None:
        told = [b64encode(bytes(FRAME_BYTES * count)).decode() for count in (frames, 1)]
        self.tell("turn.codes", name or "n0", codes=told)

    def resume(self, name: str | None, samples: int) -> None:
        name = name or f"n{len(self.turns)}"
        if not self.over and name not in self.turns:
            waiting = sum(not (t.done or t.opened) for t in self.turns.values())
            refused = self.refusing or waiting >= LIMITS.max_queued_turns
            self.turns[name] = Known(full=refused, resumed=True, last_input=self.now)
        self.tell("turn.resume", name, samples=samples, text_chars=samples, state="AAAA")

    def flush(self, name: str | None) -> None:
        target = self.turns.get(name or self.newest_open() or "")
        if target and not target.ended and not self.over:
            target.last_input = self.now
        self.tell("flush", name)

    def end(self, name: str | None) -> None:
        if not self.over and (target := name or self.newest_open()) in self.turns:
            self.turns[target].ended = True
        self.tell("turn.end", name)

    def interrupt(self, name: str | None, position: int) -> None:
        if not self.over:
            for turn_id, turn in self.turns.items():
                turn.ended |= name in (None, turn_id)
        self.tell("interrupt", name, played_samples=position)

    def tell(self, kind: str, name: str | None = None, **fields: object) -> None:
        if name:
            fields["turn_id"] = name
        self.obey(self.session.receive(json.dumps({"type": kind, **fields}), self.now))

    # One step

    def name(self, who: int) -> str | None:
        """Whom a client may mean: nobody in particular, a recent turn, an old one, a new one."""
        recent = list(self.turns)[-4:]
        choices = [None, None, None, self.on_air, *recent, *list(self.turns)[:1], "new", "new"]
        name = choices[who % len(choices)]
        return f"n{len(self.turns)}" if name == "new" else name

    def step(self, what: int, who: int) -> None:
        name, session, air = self.name(who), self.session, self.on_air
        stats = TurnStats(samples=who, ttfa_ms=1.0)
        match what % 32:
            case 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8:
                self.text(name, TEXTS[who // 8 % len(TEXTS)], end=who >= 200)
            case 9 | 10:
                self.flush(name)
            case 11 | 12:
                self.end(name)
            case 13 | 14:
                self.interrupt(name, who)
            case 15:
                self.tell("played", name, played_ms=who)
            case 16:
                self.tell("session.start", seed=who)
            case 17:
                self.obey(session.turn_started(air or "a", "streaming"))
            case 18 | 19 | 20 if air:
                reason = DONE_BY_ENGINE[who % 3]
                if self.turns[air].ended or reason != "complete":
                    self.obey(session.turn_finished(air, reason, stats))
            case 22 if air:
                failure = TurnFailure("overloaded", "full", retryable=True)
                self.obey(session.turn_failed(air, failure, stats))
            case 21 | 23 | 24 | 25 | 26 if self.to_answer:
                self.answer(self.to_answer.pop(0), who, stats)
            case 27:
                self.pass_time(who / 4)
            case 28:  # stale or foreign reports change nothing
                stale = next((i for i, t in self.turns.items() if t.done), "nobody")
                assert session.turn_finished(stale, "complete", stats) == []
            case 29 if who % 16 == 0:
                self.obey(session.receive(b"x" if who else "{", self.now))
            case 30 if who % 8 == 0:
                self.end_somehow(who // 8)
            case 31 if who % 2:
                self.resume(name, who)
            case 31:
                self.codes(name, 5 * who)
            case _:
                self.obey(session.poll(self.now))
        self.check()

    def answer(self, asked: InterruptTurn | ReportHeard, who: int, stats: TurnStats) -> None:
        turn = self.known(asked.turn_id)
        cut = who % (len(turn.text) + 1)
        report = HeardReport(who, 0.0, turn.text[:cut], turn.text[cut:])
        if isinstance(asked, InterruptTurn):
            self.obey(self.session.turn_interrupted(asked.turn_id, report, stats))
        else:
            self.obey(self.session.turn_heard(asked.turn_id, report if who % 2 else None))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for turn in self.turns.values():
            idle = self.now >= turn.last_input + LIMITS.turn_idle_ms / 1000
            turn.ended = turn.ended or (idle and not self.over)
        self.obey(self.session.poll(self.now))

    def end_somehow(self, how: int) -> None:
        match how % 4:
            case 0:
                self.refusing = True
                self.obey(self.session.drain())
            case 1:
                self.refusing = True
                for turn in self.turns.values():
                    turn.ended = turn.ended or not self.over
                self.tell("session.close")
            case 2:
                self.obey(self.session.fail("internal", "broken", m.CloseCode.INTERNAL))
            case 3:
                self.gone = self.over = True
                self.obey(self.session.closed())

    # What must be true after every step

    def check(self) -> None:
        if self.gone:
            return
        waiting = tuple(i for i, turn in self.turns.items() if not (turn.done or turn.opened))
        assert self.session.on_air == self.on_air
        assert self.session.queued == waiting
        assert len(waiting) <= LIMITS.max_queued_turns
        assert self.on_air or not waiting or self.over
        for turn_id, turn in self.turns.items():
            if turn_id == self.on_air and not turn.stopping and not self.over:
                assert (turn.fed, turn.told_end) == (turn.text, turn.ended)
        if not self.over:
            due = [t.last_input for t in self.turns.values() if not t.ended]
            expected = min(due) + LIMITS.turn_idle_ms / 1000 if due else None
            assert self.session.next_deadline() == expected

    def finish(self) -> None:
        """The client leaves politely; then every turn is done, once, and the socket closes."""
        self.refusing = True
        self.tell("session.close")
        for _ in range(2 * len(self.turns) + 2):
            while self.to_answer:
                self.answer(self.to_answer.pop(0), 0, TurnStats())
            if self.on_air:
                self.obey(self.session.turn_finished(self.on_air, "complete", TurnStats()))
        assert self.gone or (self.closes == 1 and all(turn.done for turn in self.turns.values()))


@examples(PROGRAMS)
@given(st.binary(min_size=2 * STEPS, max_size=2 * STEPS))
def test_a_session_agrees_with_the_model_after_every_step(program: bytes) -> None:
    world = World(eager=program[0] % 2 == 1)
    for what, who in zip(program[::2], program[1::2], strict=True):
        world.step(what, who)
    world.finish()
