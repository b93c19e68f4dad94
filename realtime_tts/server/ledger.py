"""Ledger: what a speech costs its account, and its turns in the log and the metrics.

Each turn costs once, and each character of its text (`PaidText`), on however many sockets it is
spoken. What is refused costs nothing.
"""

from __future__ import annotations

from functools import partial

from realtime_tts.access.account import Account
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.paid_text import PaidText
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.resumption import Resumption
from realtime_tts.server.track import Segment


class Ledger:
    """The ledger of one speech. `reports`: each segment is reported as a turn; otherwise the owner
    does that. `resumption`: its first turn was spoken in part elsewhere. It was counted there if
    this server can continue it and its account has not done so too often."""

    def __init__(
        self,
        reporter: SessionReporter,
        account: Account,
        engine: EngineHost,
        settings: SessionSettings,
        resumption: Resumption | None = None,
        *,
        reports: bool,
    ) -> None:
        self.reporter, self.account, self._reports = reporter, account, reports
        self._refusal = partial(engine.overloaded, settings.model, settings.voice, account.id)
        self.resumption, self._goes_on = resumption, resumption is not None
        self._samples = 0 if resumption is None else resumption.samples  # spoken elsewhere
        self._counted = False  # whether the turn was counted elsewhere
        paid = 0, b""
        if resumption is not None and resumption.turn and account.resumes(resumption.turn):
            self._counted, paid = True, resumption.paid
        self.text = PaidText(*paid, keeps=bool(account.id) and settings.resume == "on")
        """How much of the first turn's text is paid for."""

    def check_capacity(self) -> None:
        """Raise TurnFailure if the engine has just refused another turn like this one."""
        if not self._goes_on and (refusal := self._refusal()) is not None:
            raise refusal

    def charge(self, text: str, *, begins: bool) -> int:
        """Charge text that is about to be added; a turn `begins` with it, or goes on. Return how
        many characters it costs. Raises TurnFailure, and then nothing was counted."""
        if begins:
            self.check_capacity()
        cost = self.text.add(text)
        if self._counted and self.text.is_other:
            self._counted, begins = False, True
        count = self.account.turn if begins and not self._counted else self.account.text
        if (refusal := count(cost)) is not None:
            raise refusal
        return cost

    def over(self, segment: Segment, reason: str, failure: TurnFailure | None) -> None:
        """Close the account of a segment; if it had text, it was a turn. One that never was on the
        air, or that the engine refused or lost before it sounded, costs nothing."""
        utterances, chars = segment.utterances, segment.text_chars
        if not chars:
            return
        samples = max(0, segment.samples - self._samples)
        if samples and self.text.left:  # it may not be the text that was paid for
            self._counted, segment.charged = False, segment.charged + chars
            self.account.owes(turns=1, chars=chars)
        turns = 0 if self._counted else 1
        self._goes_on, self._counted, self._samples = False, False, 0  # later turns begin here
        if utterances is None or (utterances.failure is not None and not samples):
            self.account.give_back(turns=turns, chars=segment.charged)
        else:
            self.account.spoke(turns, samples, segment.charged)
        if utterances is not None and self._reports:
            stats, trace = utterances.stats(), segment.trace
            name, done = utterances.name, self.reporter.done
            done(name, reason, stats, chars, failure=failure, trace=trace)
