"""Account: what the clients of one key may do now, asked by every way into the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, inf
from typing import TYPE_CHECKING, Protocol

from realtime_tts.access.key import Key, matches
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure

if TYPE_CHECKING:  # they need what only a server with keys has installed
    from realtime_tts.access.rates import Rates
    from realtime_tts.access.usage import Usage

ACCOUNT = "realtime_tts.account"
"""Name under which the ASGI scope of a request with a stored key has the key's account."""
LIMIT_REACHED = "key_limit_reached"
UNAUTHORIZED = "unauthorized"

SESSION_RETRY_MS, TURN_RETRY_MS = 5_000, 1_000
"""Times to wait before trying again: sessions last for minutes, turns for seconds."""
_HELD_RETRY_MS = {"sessions": SESSION_RETRY_MS, "turns": TURN_RETRY_MS}
_LIMIT_NAMES = {
    "sessions": "sessions at once",
    "turns": "turns at once",
    "turns_per_minute": "turns a minute",
    "chars_per_minute": "characters a minute",
    "chars_per_day": "characters a day",
}


class VoiceNotAllowed(RequestError, code="voice_not_allowed"):
    """The key may not use the voice that was asked for."""


class Holder(Protocol):
    """A connection, which counts for some of its account's sessions and turns."""

    @property
    def account(self) -> Account:
        """The account that pays for the connection; `FREE` until it has shown its key."""

    @property
    def sessions(self) -> int:
        """Sessions that the connection counts for: one, or one for each context; none while it is
        unauthenticated."""

    @property
    def live_turns(self) -> int:
        """Turns of the connection that have text and are not done."""


class Account:
    """What the holders of one key may do. This base class is for clients that show no stored key
    (`FREE`): only the server's own limits apply, and no usage is recorded."""

    id = ""
    """Id of the key, in the queue for turns and in usage; empty without a key."""
    payer = ("", 1.0)
    """`id`, and the account's weight when a full server is divided among accounts."""
    is_admin = True
    """Whether the account may see and change what all customers share."""
    ended = False
    """Whether the account's key has been revoked since it was shown."""

    @property
    def registers(self) -> tuple[str, ...]:
        """Patterns of the voices that the account may register and delete."""
        return ("*",)

    def session(self, held: int = 0) -> TurnFailure | None:
        """Return why this account may not have another session, or None if it may.

        `held`: sessions that the caller already counts for and would use for this one.
        """
        return None

    def turn(self, chars: int) -> TurnFailure | None:
        """Count a new turn and its `chars` characters, or count nothing and return why not."""
        return None

    def text(self, chars: int) -> TurnFailure | None:
        """Count `chars` more characters, or count nothing and return why not."""
        return None

    def resumes(self, turn: str) -> bool:
        """Return whether the turn, counted already, may resume without being counted again."""
        return True

    def owes(self, *, turns: int, chars: int) -> None:
        """Count turns and characters that were used already, even beyond the limits."""

    def give_back(self, *, turns: int, chars: int) -> None:
        """Take turns and characters that were counted, but came to nothing, off the count again."""

    def may_use(self, voice: str | None) -> bool:
        """Return whether it may speak with `voice`; None is the checkpoint's only voice."""
        return True

    def known(self, voice: str | None) -> str | None:
        """Return a voice that its clients may know of: None in place of one that is not theirs."""
        return voice if self.may_use(voice) else None

    def may_register(self, voice: str) -> bool:
        """Return whether it may register and delete a voice of this name."""
        return matches(self.registers, voice)

    def check_voice(self, voice: str | None, default: str | None = None) -> None:
        """Raise VoiceNotAllowed for a voice that this account may not use. See
        `voice_not_allowed`."""
        if not self.may_use(voice):
            raise VoiceNotAllowed(voice_not_allowed(voice, default).message)

    def spoke(self, turns: int, samples: int, chars: int) -> None:
        """Add a finished turn to the usage: `samples` sent and `chars` received here.

        `turns`: 1, or 0 if the turn was counted elsewhere.
        """


FREE = Account()


class KeyAccount(Account):
    """The account of one key, as one front sees it.

    `holders` gives the connections of all keys that are open at this front; `elsewhere` the
    sessions and turns that a key has at other fronts and servers.
    """

    def __init__(
        self,
        key: Key,
        rates: Rates,
        usage: Usage,
        holders: Callable[[], Iterable[Holder]],
        elsewhere: Callable[[str], tuple[int, int]],
    ) -> None:
        self._rates, self._usage, self._holders = rates, usage, holders
        self._elsewhere = elsewhere
        self.renew(key)

    def renew(self, key: Key) -> None:
        """Take over `key`, the stored key, which has changed."""
        self.key = key
        self.ended = False
        self.id, self.is_admin, self.payer = key.id, key.admin, (key.id, key.share)

    @property
    def registers(self) -> tuple[str, ...]:
        return () if self.ended else self.key.register

    def session(self, held: int = 0) -> TurnFailure | None:
        if self.ended:  # while the body of a request was read
            return revoked()
        return self._at_once("sessions", 0, held)

    def turn(self, chars: int) -> TurnFailure | None:
        return self._at_once("turns", 1) or self._take(turns=1, chars=chars)

    def text(self, chars: int) -> TurnFailure | None:
        return self._take(chars=chars)

    def resumes(self, turn: str) -> bool:
        return self._rates.resumes(self.key, turn)

    def owes(self, *, turns: int, chars: int) -> None:
        self._rates.count(self.key, turns=turns, chars=chars)

    def give_back(self, *, turns: int, chars: int) -> None:
        self._rates.give_back(self.key, turns=turns, chars=chars)

    def may_use(self, voice: str | None) -> bool:
        return self.key.may_use(voice)

    def spoke(self, turns: int, samples: int, chars: int) -> None:
        self._usage.spoke(self.key, turns, samples, chars)

    def _held(self) -> tuple[int, int]:
        """Count the sessions and turns that the account has open at this front."""
        own = [one for one in self._holders() if one.account is self]
        return sum(one.sessions for one in own), sum(one.live_turns for one in own)

    def _at_once(self, limit: str, index: int, held: int = 0) -> TurnFailure | None:
        most: int | None = getattr(self.key.limits, limit)
        if most is None:
            return None
        now = self._held()[index] + self._elsewhere(self.id)[index] - held
        return None if now < most else self._refuse(limit, most, _HELD_RETRY_MS[limit])

    def _take(self, *, turns: int = 0, chars: int = 0) -> TurnFailure | None:
        exceeded = self._rates.take(self.key, turns=turns, chars=chars)
        if exceeded is None:
            return None
        wait_ms = None if exceeded.seconds == inf else max(1, ceil(exceeded.seconds * 1000))
        return self._refuse(exceeded.limit, exceeded.most, wait_ms)

    def _refuse(self, limit: str, most: int, wait_ms: int | None) -> TurnFailure:
        """Record a refusal and return it. `wait_ms`: milliseconds until a retry may succeed; None
        for more than a whole window of the limit, for which waiting does not help."""
        self._usage.refused(self.key)
        message = f"this key may have {most:,} {_LIMIT_NAMES[limit]} ({limit})"
        if wait_ms is None:
            return TurnFailure(LIMIT_REACHED, f"{message}, and this is more at once")
        wait = f"try again in {ceil(wait_ms / 1000)} s"
        return TurnFailure(LIMIT_REACHED, f"{message}; {wait}", True, wait_ms)


def voice_not_allowed(voice: str | None, default: str | None) -> TurnFailure:
    """Return the failure of a turn with a voice that the key may not use. It does not name the
    `default` one, which the client need not know."""
    unnamed = voice in (None, default)
    what = "default voice: name one of its own" if unnamed else f"voice {voice}"
    return TurnFailure(VoiceNotAllowed.code, f"this key may not use the {what}")


def revoked() -> TurnFailure:
    """Return the failure that ends the open sockets of a key that is no longer valid."""
    return TurnFailure(UNAUTHORIZED, "the key of this session is no longer valid")
