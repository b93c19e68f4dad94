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
"""Key in the ASGI scope of a request with a stored key: its account."""
LIMIT_REACHED = "key_limit_reached"
UNAUTHORIZED = "unauthorized"

_HELD_RETRY_MS = {"sessions": 5_000, "turns": 1_000}
_TOLD = {
    "sessions": "sessions at once",
    "turns": "turns at once",
    "turns_per_minute": "turns a minute",
    "chars_per_minute": "characters a minute",
    "chars_per_day": "characters a day",
}


class VoiceNotAllowed(RequestError, code="voice_not_allowed"):
    """The key is not for this voice."""


class Holder(Protocol):
    """Something that holds sessions and turns: a connection."""

    @property
    def account(self) -> Account:
        """Whose it is."""

    @property
    def sessions(self) -> int:
        """How many it counts for."""

    @property
    def live_turns(self) -> int:
        """Turns of it that have text, and are not done."""


class Account:
    """Of everybody who shows no stored key (`FREE`): no limit but the server's, nothing counted."""

    id = ""
    """Tells it from others, in the queue for turns and in usage."""
    payer = ("", 1.0)
    """The same with its share of a full server, beside others' shares."""
    is_admin = True
    """Whether it may see and change what all customers share."""
    registers: tuple[str, ...] = ("*",)
    """Patterns of the voices that it may register and delete."""

    def session(self, held: int = 0) -> TurnFailure | None:
        """Why it may not have another session; `held` are those it has that are meant."""
        return None

    def turn(self, chars: int) -> TurnFailure | None:
        """Begin a turn with so many characters: counts both, or neither, and gives why not."""
        return None

    def text(self, chars: int) -> TurnFailure | None:
        """Take so many characters more in: counts them, or gives why not."""
        return None

    def resumes(self, turn: str) -> bool:
        """Whether this turn, which was counted, may go on without being counted again."""
        return True

    def owes(self, *, turns: int, chars: int) -> None:
        """It has had so much that was not counted: counts it, whatever its limits are."""

    def give_back(self, *, turns: int, chars: int) -> None:
        """Of what was counted, so much came to nothing."""

    def may_use(self, voice: str | None) -> bool:
        """Whether it may speak with this voice; None is the checkpoint's only one."""
        return True

    def may_register(self, voice: str) -> bool:
        """Whether it may register and delete a voice of this name."""
        return matches(self.registers, voice)

    def check_voice(self, voice: str | None) -> None:
        """Raise VoiceNotAllowed for a voice that is not for it."""
        if not self.may_use(voice):
            raise VoiceNotAllowed(voice_not_allowed(voice).message)

    def spoke(self, turns: int, samples: int, chars: int) -> None:
        """A turn is over, or none if it was counted elsewhere, that came to so much here; for the
        usage."""


FREE = Account()


class KeyAccount(Account):
    """Of one key, in one front. `holders`: what is open there, of all keys; `elsewhere`: sessions
    and turns that a key has at other fronts and servers."""

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
        """What is stored of the key has changed."""
        self.key = key
        self.ended = False
        """Whoever has something open has been told that it is no longer valid."""
        self.id, self.is_admin, self.payer = key.id, key.admin, (key.id, key.share)
        self.registers = key.register

    def session(self, held: int = 0) -> TurnFailure | None:
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
        """Sessions and turns that it has here."""
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
        """`wait_ms`: None for what no window could hold, however long one waits."""
        self._usage.refused(self.key)
        told = f"this key may have {most:,} {_TOLD[limit]} ({limit})"
        if wait_ms is None:
            return TurnFailure(LIMIT_REACHED, f"{told}, and this is more at once")
        wait = f"try again in {ceil(wait_ms / 1000)} s"
        return TurnFailure(LIMIT_REACHED, f"{told}; {wait}", True, wait_ms)


def voice_not_allowed(voice: str | None) -> TurnFailure:
    """Why there is no speech with a voice that is not for the key."""
    message = f"this key may not use the voice {voice or 'of the checkpoint'}"
    return TurnFailure(VoiceNotAllowed.code, message)


def revoked() -> TurnFailure:
    """Why an open socket of a key ends that is no longer valid."""
    return TurnFailure(UNAUTHORIZED, "the key of this session is no longer valid")
