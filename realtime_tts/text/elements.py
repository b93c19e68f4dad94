"""Elements known by name, of SSML, HTML and the markup of speech APIs."""

from __future__ import annotations

HIDDEN = frozenset(
    "think thinking thought thoughts reasoning scratchpad reflection antthinking tool_call "
    "tool_calls tool_response tool_result function_call function_calls script style "
    "template svg rt rp".split()
)
"""Elements whose content is not spoken."""
BLOCKS = frozenset(
    "p div li ul ol dl dt dd tr table thead tbody hr h1 h2 h3 h4 h5 h6 blockquote pre section "
    "article header footer main nav aside figure figcaption details summary paragraph sentence "
    "html body form".split()
)
"""Elements that are on lines of their own."""
CELLS = frozenset(("td", "th"))
INLINE = frozenset(
    "b i u s em strong span a small big mark code sup sub font del ins kbd var samp tt q cite abbr "
    "dfn time label emphasis w token phoneme spell say-as".split()
)
"""Elements whose tags may stand inside a word without splitting it."""
VOICING = frozenset(
    "voice lang emotion expression express-as mstts:express-as amazon:emotion prosody speed "
    "volume".split()
)
"""Elements that change how the text behind their tag is spoken."""
_OTHERS = frozenset(
    (
        "br break speak img audio video input button option select textarea source wbr head title "
        "meta link mstts:viseme amazon:effect metadata desc lexicon bookmark say lookup iframe"
    ).split()
)
KNOWN = HIDDEN | BLOCKS | CELLS | INLINE | VOICING | _OTHERS
FLAGGED = frozenset(
    "audio video input button option select textarea script iframe details img ol".split()
) | (VOICING - {"speed", "volume"})
"""Elements whose attributes may lack a value: `<video controls>`."""
