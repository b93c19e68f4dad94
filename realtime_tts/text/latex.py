r"""Formulas as language models write them: the signs that LaTeX's commands stand for.

Only commands that are said in another way than they are written; unknown ones stay text.
"""

from __future__ import annotations

import re

from realtime_tts.text.characters import HANGUL, NO_SPACES

_PAIRS = (
    "times × cdot × div ÷ pm ± le ≤ leq ≤ ge ≥ geq ≥ lt < gt > ne ≠ neq ≠ approx ≈ infty ∞ pi "
    "π theta θ alpha α beta β gamma γ delta δ Delta Δ lambda λ mu μ sigma σ omega ω Omega Ω "
    "degree ° circ ° to → rightarrow → Rightarrow → implies → int ∫ sum ∑ ldots … dots … cdots …"
).split()
_SIGNS = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)) | {
    "quad": " ",
    "qquad": " ",
    "left": "",
    "right": "",
    "displaystyle": "",
}
_BRACED = {"frac": "{0}/{1}", "dfrac": "{0}/{1}", "tfrac": "{0}/{1}", "sqrt": "√{0}"}
_BRACED |= dict.fromkeys(
    "text textbf textit mathrm mathbf mathbb mathcal vec hat bar overline boxed operatorname "
    "ce".split(),
    "{0}",
)
_NAME = re.compile(r"\\(?P<name>[A-Za-z]+)")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[a-z]{1,12}\*?\}")
_OPEN_ENVIRONMENT = re.compile(r"\\(?:begin|end)(?:\{[a-z]{0,12}\*?)?\Z")
_BRACE = re.compile(r"[{}\n]")
_LONGEST_GROUP = 120
_DEEPEST_GROUP = 4
_DEGREE = re.compile(r"\^(?:\\circ(?![A-Za-z])|\{\\circ\})")
_OPEN_DEGREE = re.compile(r"\^\{?\\[a-z]*\Z")
_BETWEEN = re.compile(r"(?<=\w)([-+])(?=\w)")
_EXPONENT = re.compile(r"-?\d+|[A-Za-z]")
_SIMPLE = re.compile(r"[^()]*(?<![A-Za-z])[^\W_]|\d+")
_PROSE = r"(?![^$\n]{0,60}?(?<![\\A-Za-z])[A-Za-z]{3})"  # a word, which no formula contains
_DEBTS = r"(?![-−]\d[^$\n]{0,60}\$[-−]\d)"  # two amounts of money: $-5, $-3
_UNSPACED = f"{NO_SPACES}{HANGUL}"
_CONTENT = rf"(?:[^$\n{_UNSPACED}]{{0,60}}(?=\$[{_UNSPACED}])|[^$\n]{{0,60}}(?!\$[\w$]))"
"""A formula that ends before its dollar sign; a particle may follow that: $x$は."""
_INLINE = re.compile(rf"\$(?![\s\d$]){_DEBTS}{_PROSE}{_CONTENT}(?<![\s$])\$")
_SCALED = r"\$\d[\d.,]*(?: ?\\|\^|[ac-jlnp-sv-z](?=[ ^=+)-]))"
_NUMERIC = re.compile(rf"{_SCALED}{_CONTENT}(?<!\s)\$")
"""A formula that begins with a number, and no money: $3 \\times 4$, $10^6$, $2x + 1$."""
_OPEN_NUMERIC = re.compile(rf"\$\d[\d.,]*(?: |[a-z])?\Z|{_SCALED}[^$\n]{{0,60}}\$?\Z")
_OPEN_INLINE = re.compile(rf"\$(?:(?![\s\d$]){_PROSE}[^$\n]{{0,60}}(?:\$[-−]?)?)?\Z")


def command(text: str, ended: bool, in_formula: bool = False) -> tuple[int, str] | None:
    """Return the length of the command at the beginning and the text for it; length 0 if there is
    none; None if more text is needed. In a formula an unknown command is read by its name."""
    if text[0] in "^_":
        return _script(text, ended, in_formula)
    if in_formula:
        if (environment := _ENVIRONMENT.match(text)) is not None:
            return environment.end(), " "
        if not ended and _OPEN_ENVIRONMENT.match(text):
            return None
    match = _NAME.match(text)
    if match is None:
        return 0, ""
    name, form = match["name"], _BRACED.get(match["name"], "")
    if not ended and match.end() == len(text):
        known = any(each.startswith(name) for each in (*_SIGNS, *_BRACED))
        return None if in_formula or known else (0, "")
    if name in _SIGNS:
        return 1 + len(name), _SIGNS[name]
    groups: list[str] = []
    end = match.end()
    while len(groups) < form.count("{"):
        group = _group(text, end)
        if group is None:
            return (0, "") if ended else None
        if not group:
            form = ""
            break
        groups.append(_expanded(group[1:-1]))
        end += len(group)
    if not form:
        return (match.end(), name) if in_formula else (0, "")
    if len(groups) == 2 and not "".join(groups).isdecimal():
        form = "{0} ÷ {1}"  # a fraction of letters is no number
        groups = [each if _SIMPLE.fullmatch(each) else f"({each})" for each in groups]
    return end, form.format(*groups)


def _script(text: str, ended: bool, in_formula: bool) -> tuple[int, str] | None:
    """Read a power or an index in braces as one without them: x^{2}, x^{n+1}, a_{n}."""
    if not ended and _OPEN_DEGREE.match(text):
        return None
    degree = _DEGREE.match(text)
    if degree is not None:
        return degree.end(), "°"
    group = _group(text, 1)
    if group == "" and in_formula and text[1:2].isalnum():
        group = text[1]
    if not group:
        return None if group is None and not ended else (0, "")
    inside = _BETWEEN.sub(r" \1 ", _expanded(group.strip("{}")))
    if text[0] == "_":
        return 1 + len(group), f" {inside}"
    if inside in ("st", "nd", "rd", "th"):
        return 1 + len(group), inside
    return 1 + len(group), f"^{inside}" if _EXPONENT.fullmatch(inside) else f"^({inside})"


def _group(text: str, at: int) -> str | None:
    """Return the group in braces at `at`, "" if there is none, None if its end is missing."""
    depth = 0
    for brace in _BRACE.finditer(text, at, at + _LONGEST_GROUP):
        depth += {"{": 1, "}": -1}.get(brace.group(), _DEEPEST_GROUP + 1)
        if brace.start() > at and depth == 0:
            return text[at : brace.end()]
        if text[at] != "{" or depth > _DEEPEST_GROUP:
            return ""
    return "" if text[at : at + 1] not in ("", "{") or len(text) - at >= _LONGEST_GROUP else None


def _expanded(text: str) -> str:
    """Return the inside of a group with the signs for its commands."""
    said, at = "", 0
    while at < len(text):
        length, sign = command(text[at:], True, True) or (0, "")
        said += sign if length else text[at]
        at += length or 1
    return said


def dollar(text: str, closes: bool, ended: bool) -> int | None:
    """Return how much of what a dollar sign begins is the mark of a formula: `$$`, or the sign at
    either end of `$x + y$`; 0 if it is money; None if more text is needed."""
    if len(text) == 1:
        return (1 if closes else 0) if ended or closes else None
    if text[1] == "$":
        return 2
    if closes:
        return 1
    if not ended and (_OPEN_INLINE.match(text) or _OPEN_NUMERIC.match(text)):
        return None
    return 1 if _INLINE.match(text) or _NUMERIC.match(text) else 0
