r"""Formulas as language models write them: the signs that LaTeX's commands stand for.

Only commands that are said in another way than they are written; unknown ones stay text. Formulas
that contain formulas in braces (`\frac{\frac{1}{2}}{3}`) are left as they are.
"""

from __future__ import annotations

import re

_PAIRS = (
    "times × cdot × div ÷ pm ± le ≤ leq ≤ ge ≥ geq ≥ lt < gt > ne ≠ neq ≠ approx ≈ infty ∞ pi "
    "π theta θ alpha α beta β gamma γ delta δ Delta Δ lambda λ mu μ sigma σ omega ω Omega Ω "
    "degree ° circ ° to → rightarrow → Rightarrow ⇒ ldots … dots …"
).split()
_SIGNS = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)) | {
    "quad": " ",
    "left": "",
    "right": "",
    "displaystyle": "",
}
_BRACED = {"frac": "{0}/{1}", "dfrac": "{0}/{1}", "tfrac": "{0}/{1}", "sqrt": "√{0}"}
_BRACED |= dict.fromkeys("text textbf textit mathrm mathbf boxed operatorname".split(), "{0}")
_COMMAND = re.compile(r"\\(?P<name>[A-Za-z]+)(?P<groups>(?:\{[^{}\\\n]*\}){0,2})")
_OPEN = re.compile(r"\\[A-Za-z]*(?:\{[^{}\\\n]*\})?(?:\{[^{}\\\n]*)?\Z")
_GROUP = re.compile(r"\{([^{}]*)\}")
_PROSE = r"(?![^$\n]{0,60}?(?<![\\A-Za-z])[A-Za-z]{3})"  # a word, which no formula contains
_DEBTS = r"(?![-−]\d[^$\n]{0,60}\$[-−]\d)"  # two amounts of money: $-5, $-3
_INLINE = re.compile(rf"\$(?![\s\d$]){_DEBTS}{_PROSE}[^$\n]{{0,60}}(?<![\s$])\$(?![\w$])")
_OPEN_INLINE = re.compile(rf"\$(?:(?![\s\d$]){_PROSE}[^$\n]{{0,60}}(?:\$[-−]?)?)?\Z")


def command(text: str, ended: bool) -> tuple[int, str] | None:
    """Return the length of the command at the beginning and the text for it; length 0 if there is
    none; None if more text is needed."""
    match = _COMMAND.match(text)
    if match is None:
        return 0, ""
    name, groups = match["name"], _GROUP.findall(match["groups"])
    known = name in _SIGNS or name in _BRACED
    open_name = match.end() == len(text) and any(
        each.startswith(name) for each in (*_SIGNS, *_BRACED)
    )
    if not ended and (open_name or (known and name in _BRACED and _OPEN.match(text))):
        return None
    if name in _SIGNS:
        return 1 + len(name), _SIGNS[name]
    form = _BRACED.get(name, "")
    needed = form.count("{")
    if not form or len(groups) < needed:
        return 0, ""
    length = 1 + len(name) + sum(len(group) + 2 for group in groups[:needed])
    if needed == 2 and not "".join(groups).isdecimal():
        form = "{0} ÷ {1}"  # a fraction of letters is no number
    return length, form.format(*groups)


def dollar(text: str, closes: bool, ended: bool) -> int | None:
    """Return how much of what a dollar sign begins is the mark of a formula: `$$`, or the sign at
    either end of `$x + y$`; 0 if it is money; None if more text is needed."""
    if len(text) == 1:
        return (1 if closes else 0) if ended or closes else None
    if text[1] == "$":
        return 2
    if closes:
        return 1
    if not ended and _OPEN_INLINE.match(text):
        return None
    return 1 if _INLINE.match(text) else 0
