"""`realtime-tts clone`: a recording becomes a registered voice, on a server or in a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console

from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.session_arguments import add_server_arguments, server_flags
from realtime_tts.client.voices import VoiceClient
from realtime_tts.errors import ConfigError

MAX_BYTES = 10 * 1024 * 1024

EXAMPLES = """\
examples:
  realtime-tts clone ref.wav --name anna
  realtime-tts clone ref.wav --name anna --text "What is said in ref.wav, word for word."
  realtime-tts clone ref.flac --name anna --model Qwen/Qwen3-TTS-12Hz-1.7B-Base

Clone only voices whose owners agreed to it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument(
        "recording", help="WAV, FLAC, MP3 or OGG, 1 to 60 s (10 to 20 s are best) of one speaker"
    )
    parser.add_argument(
        "--name", required=True, help="the voice's: a-z, 0-9, _ and -, at most 64 characters"
    )
    parser.add_argument(
        "--text", help="what the recording says: with it, the voice keeps the speaker's manner"
    )
    parser.add_argument("--language", help="of the recording")
    parser.add_argument(
        "--no-silence", action="store_true", help="do not append half a second of silence"
    )
    add_server_arguments(parser)
    local = parser.add_argument_group("without a server")
    local.add_argument(
        "--model", help="encode here, with this Base checkpoint: a Hub id or a folder"
    )
    local.add_argument(
        "--voices-dir",
        metavar="FOLDER|s3://BUCKET/PREFIX",
        help="where to keep the voice (default: as `serve` does)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the voice. Returns the exit status."""
    if arguments.voices_dir is not None and arguments.model is None:
        raise ConfigError(
            "--voices-dir is for cloning without a server: give --model, too, or leave it out"
        )
    recording = _read(Path(arguments.recording))
    if arguments.model is None:
        made = _on_server(arguments, recording)
    else:
        made = _here(arguments, recording)
    how = "with its manner of speaking" if made["in_context"] else "from its sound alone"
    console = Console()
    console.print(f"registered {made['id']}, {how}", highlight=False)
    command = _hear_it(arguments, made["id"])
    console.print(f"  {command}", highlight=False, markup=False, soft_wrap=True)
    return ExitStatus.OK


def _hear_it(arguments: argparse.Namespace, voice: str) -> str:
    """Return the command to type next."""
    if arguments.model is not None:
        where = f" --voices-dir {quote(arguments.voices_dir)}" if arguments.voices_dir else ""
        return f"realtime-tts serve --model {quote(arguments.model)}{where}"
    keyed = arguments.api_key is not None
    flags = server_flags(arguments.url, keyed=keyed, tls_ca=arguments.tls_ca)
    return f'realtime-tts say{flags} --voice {voice} "Hello there."'


def _read(path: Path) -> bytes:
    """Read a recording. Raises OSError, or ConfigError for a file that no server takes."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{path} has more than {MAX_BYTES} bytes (10 MB): 10 to 20 s of speech are enough"
        )
    return data


def _on_server(arguments: argparse.Namespace, recording: bytes) -> dict[str, Any]:
    return VoiceClient(arguments.url, api_key=arguments.api_key, tls_ca=arguments.tls_ca).clone(
        arguments.name,
        recording,
        text=arguments.text,
        language=arguments.language,
        append_silence=not arguments.no_silence,
    )


def _here(arguments: argparse.Namespace, recording: bytes) -> dict[str, Any]:
    """Do in this process what the server's voice worker does: check, decode, encode, write."""
    from realtime_tts.engine.load import voice_maker_loader
    from realtime_tts.engine.settings import EngineConfig
    from realtime_tts.voices.audio import decode
    from realtime_tts.voices.form import NewVoice
    from realtime_tts.voices.registry import default_folder
    from realtime_tts.voices.stored import open_registry

    where = arguments.voices_dir
    registry = open_registry(default_folder() if where is None else where)
    registry.update()
    registry.check_free(arguments.name)
    decoded = decode(recording)
    wanted = NewVoice(
        name=arguments.name,
        audio=recording,
        text=arguments.text,
        language=arguments.language,
        append_silence=not arguments.no_silence,
    )
    make = voice_maker_loader(EngineConfig(model=arguments.model))()
    path = registry.unfinished()
    try:
        make(wanted, decoded, path)
        record = registry.add(path)
    finally:
        path.unlink(missing_ok=True)
    return {"id": record.id, "in_context": record.in_context}
