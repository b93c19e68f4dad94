"""What the tags that change the voice ask for: SSML's, and those of other speech APIs."""

from __future__ import annotations

import re
from dataclasses import replace

from realtime_tts.text.directions import Break, Voicing

_RATES = {"x-slow": 0.5, "slow": 0.8, "medium": 1.0, "default": 1.0, "fast": 1.25, "x-fast": 1.6}
_VOLUMES = {"silent": 0.0, "x-soft": 0.25, "soft": 0.5, "medium": 1.0, "default": 1.0}
_VOLUMES |= {"loud": 1.4, "x-loud": 2.0}
_STRENGTHS = {"none": 0.0, "x-weak": 0.1, "weak": 0.2, "medium": 0.4, "strong": 0.7}
_STRENGTHS |= {"x-strong": 1.0}
_NUMBER = r"(?P<sign>[+-]?)(?P<number>\d{1,4}(?:\.\d{0,6})?|\.\d{1,6})"
_FACTOR = re.compile(rf"{_NUMBER}\s*(?P<unit>%|dB|x)?", re.IGNORECASE)
_TIME = re.compile(r"\+?(?P<number>\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})\s*(?P<unit>ms|s)", re.I)
_PLAIN_EMOTIONS = frozenset(("neutral", "none", "default", "normal"))
_MOST_LETTERS = 100  # of a name, or of the description of an emotion


def pause_of(attributes: dict[str, str]) -> Break | None:
    """Return the pause of `<break>`, of a stated time or strength; None for one that is neither."""
    if "time" in attributes:
        match = _TIME.fullmatch(attributes["time"])
        if match is None:
            return None
        return Break(float(match["number"]) / (1000 if match["unit"].lower() == "ms" else 1))
    seconds = _STRENGTHS.get(attributes.get("strength", "medium").lower())
    return Break(seconds) if seconds else None


def changed(voicing: Voicing, name: str, attributes: dict[str, str]) -> Voicing:
    """Return the voicing behind such a tag, which stays as before where nothing known is set."""
    if name in ("lang", "voice"):
        language = attributes.get("xml:lang") or attributes.get("lang")
        voice = attributes.get("name") if name == "voice" else None
        return replace(
            voicing,
            language=_cut(language) or voicing.language,
            voice=_cut(voice) or voicing.voice,
        )
    if name == "prosody":
        rate = _factor(attributes.get("rate"), _RATES, of_hundred=False)
        volume = _factor(attributes.get("volume"), _VOLUMES, of_hundred=True)
    elif name in ("speed", "volume"):
        given = _factor(attributes.get("ratio") or attributes.get("value"), {}, of_hundred=False)
        rate, volume = (given, None) if name == "speed" else (None, given)
    else:
        return _with_emotion(voicing, attributes)
    return replace(
        voicing,
        rate=voicing.rate if rate is None else rate,
        volume=voicing.volume if volume is None else volume,
    )


def _with_emotion(voicing: Voicing, attributes: dict[str, str]) -> Voicing:
    keys = ("value", "name", "style", "type", "emotion")
    emotion = next((attributes[key] for key in keys if attributes.get(key)), None)
    if emotion is None:
        return voicing
    plain = emotion.lower() in _PLAIN_EMOTIONS
    return replace(voicing, emotion=None if plain else _cut(emotion))


def _cut(name: str | None) -> str | None:
    return name[:_MOST_LETTERS].strip() if name else None


def _factor(written: str | None, names: dict[str, float], *, of_hundred: bool) -> float | None:
    """Return the factor of `slow`, `1.2`, `120%`, `+20%`, `+6dB`; None for anything else.
    `of_hundred`: a bare number above 4 counts from 0 to 100, as volumes in SSML 1.0."""
    if not written:
        return None
    if written.lower() in names:
        return names[written.lower()]
    match = _FACTOR.fullmatch(written)
    if match is None:
        return None
    number, unit = float(match["number"]), (match["unit"] or "").lower()
    signed = -number if match["sign"] == "-" else number
    if unit == "db":
        return round(10 ** (min(signed, 40.0) / 20), 4)
    if unit == "%":
        return max(0.0, 1 + signed / 100) if match["sign"] else number / 100
    if match["sign"]:
        return None
    return number / 100 if of_hundred and number > 4 else number
