"""The flags that `say`, `voices`, `clone` and `bench` share: which server, which voice."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Sequence
from typing import Any, cast

from realtime_tts.client import DEFAULT_SERVER, SessionOptions

URL_VARIABLE = "REALTIME_TTS_URL"
KEY_VARIABLE = "REALTIME_TTS_API_KEY"

_SESSION = (
    "voice", "language", "instructions", "seed", "text_filter", "text_normalization", "layout",
)  # fmt: skip
_SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty")


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """--url, --api-key and --tls-ca."""
    group = parser.add_argument_group("server")
    group.add_argument(
        "--url",
        "--server",
        default=os.environ.get(URL_VARIABLE, DEFAULT_SERVER),
        help=f"its address (default: {DEFAULT_SERVER}, or the environment's {URL_VARIABLE})",
    )
    group.add_argument(
        "--api-key",
        default=os.environ.get(KEY_VARIABLE),
        metavar="KEY",
        help=f"its API key (default: the environment's {KEY_VARIABLE})",
    )
    group.add_argument(
        "--tls-ca",
        metavar="FILE",
        help="for wss://: trust the certificates in this file and no others (default: those in the "
        "environment's SSL_CERT_FILE, else what the machine trusts)",
    )


def add_voice_arguments(parser: argparse.ArgumentParser) -> None:
    """--voice, --language and the rest of the session's settings."""
    group = parser.add_argument_group("voice")
    group.add_argument("--voice", help="a voice of the server, see `realtime-tts voices`")
    group.add_argument("--language", help="language of the text (default: the server decides)")
    group.add_argument("--instructions", help="manner of speaking, where the checkpoint takes any")
    group.add_argument("--seed", type=int, help="makes speech repeatable")
    group.add_argument("--temperature", type=float, help="0 is greedy")
    group.add_argument("--top-k", type=int, help="0 means no limit")
    group.add_argument("--top-p", type=float, help="1 means no limit")
    group.add_argument("--repetition-penalty", type=float)
    group.add_argument("--text-filter", choices=("on", "off"), help="leave markup unspoken")
    group.add_argument(
        "--text-normalization",
        choices=("auto", "on", "off"),
        help="say numbers and abbreviations as words before the model sees them",
    )
    group.add_argument("--layout", choices=("auto", "streaming", "full_text"))


def session_options(arguments: argparse.Namespace) -> SessionOptions:
    """The client's options for the flags that were given."""
    options = _given(arguments, *_SESSION)
    sampling = _given(arguments, *_SAMPLING)
    if arguments.temperature == 0:
        sampling["predictor"] = {"temperature": 0.0}  # greedy is meant for all sixteen codes
    if sampling:
        options["sampling"] = sampling
    return cast(SessionOptions, options)


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


_KEY = re.compile(r"(--ap\S*?[ =]+)('[^']*'|[^\s']+)")


def shown_command(words: Sequence[str]) -> str:
    """What was typed, without keys: they do not belong into a file that is passed around."""
    return _KEY.sub(r"\1***", shlex.join(["realtime-tts", *words]))
