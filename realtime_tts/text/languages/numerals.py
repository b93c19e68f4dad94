"""How the words of a large number are put together, from its highest power down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Power = tuple[int, str, str]
"""A power, what is said for one of it ("un millón"), and what several are ("millones")."""


def by_powers(
    n: int, powers: Sequence[Power], several: Callable[[int], str], rest: Callable[[int], str]
) -> str:
    """The words for `n`, separated by spaces. `powers`: the largest first.

    `several(k)`: the number before a power that there is k times, k > 1; `rest(k)`: the words for
    what is left below the last power, 0 only if `n` is.
    """
    words = []
    for power, one, many in powers:
        times, n = divmod(n, power)
        if times:
            words.append(one if times == 1 else f"{several(times)} {many}")
    if n or not words:
        words.append(rest(n))
    return " ".join(words)
