"""`realtime-tts say`: speak a text, also while it is still being written."""

from __future__ import annotations

import argparse
import asyncio
import codecs
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import cast

from msgspec.structs import asdict, replace
from rich.console import Console
from rich.markup import escape

from realtime_tts.audio.formats import ENGINE_FORMAT, AudioFormat
from realtime_tts.cli.counted import counted
from realtime_tts.cli.failures import ExitStatus, check_writable
from realtime_tts.cli.files import format_for
from realtime_tts.cli.output import FALLBACK_FILE, Output, sink_makers
from realtime_tts.cli.playback import PLAYER_COMMANDS
from realtime_tts.cli.session_arguments import (
    add_server_arguments,
    add_voice_arguments,
    quoted_flags,
    session_options,
)
from realtime_tts.client import AudioOptions, Interrupted, RealtimeTTS
from realtime_tts.client.threaded import read_in_a_thread
from realtime_tts.errors import ConfigError

_EXAMPLES = """\
examples:
  realtime-tts say "Hello there."
  realtime-tts say "Hello there." -o hello.wav --voice ava
  realtime-tts say "Hello there." -o hello.mp3
  realtime-tts say "Hello there." -o prompt.wav --format ulaw_8000
  my-language-model | realtime-tts say -
  realtime-tts say --local "Hello there."
  realtime-tts say "Hello there." -o - | aplay -t raw -f S16_LE -r 24000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "text", nargs="?", help="what to say; - reads it from standard input, as it arrives"
    )
    parser.add_argument("--stdin", action="store_true", help="the same as -")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write a file instead of playing: .wav (also without a suffix), .mp3, .opus, .ogg, "
        ".webm, .aac, .flac, .pcm; - writes raw PCM to standard output, packet by packet",
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="with --output: encoding, perhaps hertz, perhaps kbit/s, such as wav_16000, "
        "ulaw_8000, mp3_44100_64 or opus (docs/audio.md lists them)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no figures")
    add_server_arguments(parser).add_argument(
        "--local",
        action="store_true",
        help="speak without a server: load the checkpoint here, which takes some seconds",
    )
    local = parser.add_argument_group("with --local")
    local.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")
    local.add_argument(
        "--start",
        default="",
        metavar="FLAGS",
        help="other flags of `serve`, as --start='--threads 2'; its variables are not read",
    )
    add_voice_arguments(
        parser,
        model="one of the server's checkpoints, if it has several (default: the voice picks); with "
        "--local the one to load: a Hub id or a folder (default: the demo voice)",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.text == "-":
        arguments.text, arguments.stdin = None, True
    if arguments.text is not None and arguments.stdin:
        raise ConfigError("give a text or --stdin, not both")
    if arguments.text is None and not arguments.stdin and sys.stdin.isatty():
        raise ConfigError('nothing to say; try: realtime-tts say "Hello there."')
    if (arguments.device or arguments.start) and not arguments.local:
        raise ConfigError("--device and --start are for speaking without a server: add --local")
    audio_format = format_for(arguments.output, arguments.format)
    if arguments.output not in (None, "-"):
        check_writable(Path(arguments.output))
    console = Console(stderr=True, quiet=arguments.quiet, highlight=False)
    options = session_options(arguments)
    if audio := _session_audio(audio_format, arguments.output):
        options["audio"] = audio
    if arguments.local:
        options.pop("model", None)  # there is one

    async def say(url: str, api_key: str | None, tls_ca: str | None = None) -> int:
        async with RealtimeTTS(url, api_key=api_key, tls_ca=tls_ca, **options) as tts:
            return await _Saying(tts, arguments, audio_format, console).run()

    if arguments.local:
        from realtime_tts.cli.own_server import with_own_server

        return with_own_server(_local_flags(arguments), console, say)
    return asyncio.run(say(arguments.url, arguments.api_key, arguments.tls_ca))


def _local_flags(arguments: argparse.Namespace) -> list[str]:
    """Return the flags of `serve` that those of `say` mean."""
    named = {"--model": arguments.model, "--device": arguments.device}
    flags = [word for pair in named.items() if pair[1] is not None for word in pair]
    return flags + quoted_flags(arguments.start)


def _session_audio(audio_format: AudioFormat, output: str | None) -> AudioOptions:
    """Return the format to ask the server for; nothing for the one that it sends anyway."""
    if audio_format.container == "wav" and output != "-":  # the file's header is made here
        audio_format = replace(audio_format, container="raw")
    if audio_format == ENGINE_FORMAT:
        return {}
    parts = asdict(audio_format).items()
    return cast(AudioOptions, {name: value for name, value in parts if value is not None})


class _Saying:
    """One text that is being spoken to a listener."""

    def __init__(
        self,
        tts: RealtimeTTS,
        arguments: argparse.Namespace,
        audio_format: AudioFormat,
        console: Console,
    ) -> None:
        self._console = console
        self._output = Output(
            sink_makers(arguments.output, audio_format),
            lambda why: console.print(escape(why), style="yellow", soft_wrap=True),
        )
        self._chosen_output = arguments.output
        self._asked_at = 0.0 if arguments.text is None else time.monotonic()
        self._first_packet_at: float | None = None
        self._interrupting: asyncio.Task[Interrupted] | None = None
        self._speech = tts.speak(self._deltas() if arguments.text is None else arguments.text)

    async def run(self) -> int:
        with _on_interrupt(self._interrupt):
            try:
                await self._listen()
            except BaseException:
                self._output.stop()
                if self._interrupting is not None:  # nobody waits for its answer any more
                    self._interrupting.cancel()
                raise
            if self._interrupting is not None:
                self._print_heard(await self._interrupting)
                return ExitStatus.INTERRUPTED
        self._print_figures()
        return ExitStatus.OK

    async def _deltas(self) -> AsyncGenerator[str, None]:
        async with contextlib.aclosing(text_from(sys.stdin.fileno())) as deltas:
            async for delta in deltas:
                self._asked_at = self._asked_at or time.monotonic()
                yield delta

    async def _listen(self) -> None:
        async for packet in self._speech:
            if self._first_packet_at is None:
                self._first_packet_at = time.monotonic()
            await self._output.write(packet)
        if self._interrupting is None:
            await self._output.finish()

    def _interrupt(self) -> None:
        """Handle Ctrl-C: silence first, then ask the server what was heard."""
        if self._interrupting is None:
            played = self._output.played_seconds
            self._output.stop()
            interrupt = self._speech.interrupt(None if played is None else played * 1000)
            self._interrupting = asyncio.create_task(interrupt)

    def _print_heard(self, report: Interrupted) -> None:
        if report.text_spoken:
            self._console.print(f"[bold]heard[/bold] {escape(report.text_spoken)}")
        if report.text_remaining:
            self._console.print(f"[bold]not heard[/bold] {escape(report.text_remaining)}")
        self._console.print(f"interrupted after {report.played_ms / 1000:.2f} s")

    def _print_figures(self) -> None:
        if self._first_packet_at is None:
            self._console.print("the text had nothing to speak", style="yellow")
            return
        result = self._speech.result
        assert result is not None, "the speech is over"
        figures = [
            f"{result.seconds:.2f} s of speech",
            f"first packet after {(self._first_packet_at - self._asked_at) * 1000:.0f} ms",
        ]
        if result.underruns:
            figures.append(f"{counted(result.underruns, 'gap')} in the speech")
        if result.held_ms >= 1:
            figures.append(f"waited {result.held_ms / 1000:.2f} s for text")
        if result.reason != "complete":
            figures.append(f"ended early: {result.reason}")
        if self._output.name not in (None, self._chosen_output):
            figures.append(f"[bold]{self._output.name}[/bold]")
        if self._output.name == str(FALLBACK_FILE) and self._chosen_output is None:
            looked_for = ", ".join(command[0] for command in PLAYER_COMMANDS)
            found = "worked" if self._output.failures else f"found ({looked_for})"
            line = f"no audio player {found}: written to {FALLBACK_FILE}"
            self._console.print(line, soft_wrap=True)
        self._console.print(" · ".join(figures), soft_wrap=True)


@contextlib.contextmanager
def _on_interrupt(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` at the first Ctrl-C; a second one ends the program as usual, by asyncio's own
    handler, which cancels the main task. Python's would break into whatever runs."""
    loop, usual = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)

    def stop() -> None:
        if loop.remove_signal_handler(signal.SIGINT):
            signal.signal(signal.SIGINT, usual)

    def first() -> None:
        stop()
        action()

    try:
        loop.add_signal_handler(signal.SIGINT, first)
    except NotImplementedError:  # Windows: Ctrl-C ends the program without a report
        yield
        return
    try:
        yield
    finally:
        stop()


_READ_BYTES = 4096


def text_from(descriptor: int) -> AsyncGenerator[str, None]:
    """Return the text of a file descriptor, in the pieces in which it arrives, decoded from UTF-8.

    A character cut by a read is kept until it is whole; bytes that are no UTF-8 become U+FFFD.
    """
    # In a thread, because neither terminals nor regular files fit asyncio's pipes everywhere.
    return read_in_a_thread(_pieces_of(descriptor))


def _pieces_of(descriptor: int) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while data := os.read(descriptor, _READ_BYTES):
        if text := decoder.decode(data):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text
