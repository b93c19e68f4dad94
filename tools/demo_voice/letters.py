"""Letters said by their names, as users write them: terminals for the grammar of `letters.txt`."""

from __future__ import annotations

import string
from random import Random

from tools.demo_voice.grammar import Terminal

_COMMON = (
    "CIA FBI USB CPU GPU TV PC PDF GPS ATM DVD CD HTML URL DNA RNA MRI NBA NFL CNN BBC MTV PR HR "
    "QR VPN SQL HTTP CSS XML SMS GPA MBA CEO CFO CTO API SDK LLM AI IT ID IP LED LCD SSD RAM BMW "
    "IBM SOS RSVP BBQ DJ UK US USA EU UN UFO VIP FAQ DIY ETA ASAP HDMI KFC LLC MP NYPD PTSD TTS ASR"
).split()
_NAMES = "anna ben carol david emma frank grace henry info jobs help support sales news".split()
_SITES = "example test shop mail garden river window kitchen travel music health market".split()
_ENDS = "com com com org net edu io co".split()


def _letter(rng: Random) -> str:
    return rng.choice(string.ascii_uppercase)


def _acronym(rng: Random) -> str:
    if rng.random() < 0.6:
        return rng.choice(_COMMON)
    return "".join(_letter(rng) for _ in range(rng.choice((2, 3, 3, 3, 4))))


def _letters(rng: Random) -> str:
    return ", ".join(_letter(rng) for _ in range(rng.randint(3, 8)))


def _initials(rng: Random) -> str:
    return " ".join(_letter(rng) for _ in range(rng.randint(2, 6)))


def _code(rng: Random) -> str:
    """Letters and digits, one by one."""
    signs = string.ascii_uppercase + 2 * string.digits
    return ", ".join(rng.choice(signs) for _ in range(rng.randint(3, 6)))


def _site(rng: Random) -> str:
    start = rng.choice(("www.", "www.", "", "https://www."))
    return f"{start}{rng.choice(_SITES)}.{rng.choice(_ENDS)}"


def _mail(rng: Random) -> str:
    name = rng.choice(_NAMES)
    if rng.random() < 0.3:
        name += rng.choice("._-") + rng.choice(_NAMES)
    return f"{name}@{rng.choice(_SITES)}.{rng.choice(_ENDS)}"


TERMINALS: dict[str, Terminal] = {
    "one_letter": _letter,
    "acronym": _acronym,
    "letters": _letters,
    "initials": _initials,
    "code": _code,
    "site": _site,
    "mail": _mail,
}
