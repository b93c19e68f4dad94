"""How long to wait before trying to connect again."""

from __future__ import annotations

from dataclasses import dataclass

from realtime_tts.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with jitter; all values in seconds.

    `give_up_after` bounds the whole effort, waits included; 0 means one attempt and no more.
    """

    first: float = 0.1
    factor: float = 2.0
    longest: float = 5.0
    give_up_after: float = 30.0

    def __post_init__(self) -> None:
        if self.first <= 0 or self.factor < 1 or self.longest < self.first:
            raise ConfigError(
                "a backoff needs first > 0, factor >= 1 and longest >= first; got "
                f"first={self.first}, factor={self.factor}, longest={self.longest}"
            )

    def delay(self, attempt: int, random: float) -> float:
        """Seconds before attempt number `attempt` (the first retry is 1).

        `random` in [0, 1) spreads the delay over its upper half, so that the clients of a
        restarted server do not all come back in the same moment.
        """
        # The exponent is bounded: 2.0 ** 5000 would overflow long before a user gives up.
        whole = min(self.longest, self.first * self.factor ** min(attempt - 1, 64))
        return whole * (0.5 + 0.5 * random)
