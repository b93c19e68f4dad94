"""The command line as a result may show it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_KEY = re.compile(r"(--ap\S*?[ =]+)('[^']*'|[^\s']+)")


def shown_command(words: Sequence[str]) -> str:
    """What was typed, without keys: they do not belong into a file that is passed around."""
    return _KEY.sub(r"\1***", shlex.join(["realtime-tts", *words]))
