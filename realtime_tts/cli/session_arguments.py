"""The flags that `say`, `voices`, `clone` and `bench` share: which server, which voice."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from realtime_tts.errors import ConfigError
from realtime_tts.protocol.changes import nested
from realtime_tts.protocol.messages import DEFAULT_SERVER
from realtime_tts.protocol.query import QUERY_FIELDS
from realtime_tts.protocol.settings import SessionSettings

if TYPE_CHECKING:  # `serve` knows these flags, too, and does without a client
    from realtime_tts.client import SessionOptions

_Number = TypeVar("_Number", int, float)

URL_VARIABLE = "REALTIME_TTS_URL"
KEY_VARIABLE = "REALTIME_TTS_API_KEY"

_HELP = {
    "model": "one of the server's checkpoints, if it has several (default: the voice picks)",
    "voice": "a voice of the server, see `realtime-tts voices`",
    "language": "language of the text (default: the server decides)",
    "instructions": "manner of speaking, where the checkpoint takes any",
    "seed": "makes speech repeatable",
    "temperature": "0 is greedy",
    "top_k": "0 means no limit",
    "top_p": "1 means no limit",
    "text_filter": "leave markup unspoken",
    "text_normalization": "say numbers and abbreviations as words before the model sees them",
    "lexicons": "lexicons stored on the server, as medical,brands@3",
    "trim_silence": "leave out the silence that the model begins with",
    "loudness": "bring every voice and turn to -16 LUFS",
    "pacing": "how much text is spoken as one where it comes slowly",
    "speed": "0.7 to 1.4: 1.2 says in five seconds what takes six, at the same pitch",
    "lead_ms": "how far ahead of the listener the server may send, in milliseconds",
}
_NO_FLAG = ("audio", "word_times", "resume", "traceparent")
"""Settings without a flag: the format is `--format`; nothing shows the times of words; the client
resumes by itself; and a shell has no span."""

_FLAGS = {name: path for name, path in QUERY_FIELDS.items() if path[0] not in _NO_FLAG}


def add_server_arguments(
    parser: argparse.ArgumentParser,
) -> argparse._MutuallyExclusiveGroup:
    """Add --url, --api-key and --tls-ca. A flag that is added to the result excludes --url."""
    group = parser.add_argument_group("server")
    place = group.add_mutually_exclusive_group()
    place.add_argument(
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
    return place


def server_flags(url: str, *, keyed: bool, tls_ca: str | None) -> str:
    """Return these flags for a command to type, where they are needed, and KEY for a key."""
    flags = "" if url == DEFAULT_SERVER else f" --url {shlex.quote(url)}"
    if tls_ca is not None:
        flags += f" --tls-ca {shlex.quote(tls_ca)}"
    return f"{flags} --api-key KEY" if keyed else flags


def add_voice_arguments(parser: argparse.ArgumentParser, **helps: str) -> None:
    """Add --voice, --language and the rest of the session's settings: a flag for each. `helps`:
    texts that replace the usual ones."""
    group = parser.add_argument_group("voice")
    for name, path in _FLAGS.items():
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(
            flag, help=helps.get(name, _HELP.get(name)), **_kind(SessionSettings, path)
        )
    group.add_argument(
        "--lexicon",
        action="append",
        type=_word_and_respelling,
        metavar="WORD=SAID",
        help="what to say for a word; repeatable",
    )


def add_number_arguments(
    group: argparse._ArgumentGroup, defaults: object, helps: Mapping[str, str]
) -> None:
    """Add a flag for each of these fields of `defaults`, whose values give the type and the
    default."""
    for name, meaning in helps.items():
        default = getattr(defaults, name)
        meaning += (
            f" (default: {default:g})" if isinstance(default, float) else f" (default: {default})"
        )
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(flag, type=type(default), default=default, help=meaning)


def numbers(text: str, kind: type[_Number]) -> list[_Number]:
    """Return the numbers of a flag that takes several, as in 1,2,4. Raises ConfigError."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        wanted = "integers" if kind is int else "numbers"
        raise ConfigError(f"expected {wanted} separated by commas, got {text!r}") from error


def quoted_flags(text: str) -> list[str]:
    """Return the flags of another command that were given as one word. Raises ConfigError."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"flags of `serve`, {text}: {error}") from None


def session_options(arguments: argparse.Namespace) -> SessionOptions:
    """Return the client's options for the flags that were given."""
    options: dict[str, Any] = {}
    for name, path in _FLAGS.items():
        if (value := getattr(arguments, name)) is not None:
            _put(options, path, value)
    if arguments.temperature == 0 and arguments.predictor_temperature is None:
        _put(options, _FLAGS["predictor_temperature"], 0.0)  # greedy is meant for all codes
    if arguments.lexicon:
        options["lexicon"] = dict(arguments.lexicon)
    return cast("SessionOptions", options)


def _kind(struct: type[msgspec.Struct], path: Sequence[str]) -> dict[str, Any]:
    """Return what argparse needs to know of a setting: its choices, or its type."""
    if len(path) > 1:
        return _kind(nested(struct)[path[0]], path[1:])
    hint = get_type_hints(struct)[path[0]]
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if get_origin(hint) is list:
        return {"type": _names, "metavar": "NAME,NAME"}
    return {"type": next(iter(get_args(hint)), hint)}  # without its None


def _put(options: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for parent in path[:-1]:
        options = options.setdefault(parent, {})
    options[path[-1]] = value


def _names(text: str) -> list[str]:
    return text.split(",")


def _word_and_respelling(text: str) -> tuple[str, str]:
    word, found, said = text.partition("=")
    if not (word and found and said):
        raise argparse.ArgumentTypeError(f"expected WORD=SAID, as in SQL=sequel, got {text!r}")
    return word, said


_KEY = re.compile(r"(--ap\S*?[ =]+)('[^']*'|[^\s']+)")


def shown_command(words: Sequence[str]) -> str:
    """Return the command without keys, which do not belong in a file that is passed around."""
    return _KEY.sub(r"\1***", shlex.join(["realtime-tts", *words]))
