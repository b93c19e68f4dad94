"""The flags of `realtime-tts serve`."""

from __future__ import annotations

import argparse
from typing import get_args

from realtime_tts.cli.serve_limits import (
    ADDRESSES,
    SESSIONS,
    add_limit_arguments,
    add_socket_arguments,
)
from realtime_tts.cli.session_arguments import KEY_VARIABLE, add_number_arguments
from realtime_tts.config import LOG_LEVELS, Marking
from realtime_tts.configuration.options import secret
from tts_scheduler import SchedulerConfig

KEYS_VARIABLE = "REALTIME_TTS_API_KEYS"
_SCHEDULER = SchedulerConfig()

RELOADED = frozenset(
    {"api_key", "connection_rate", "drain_seconds", "log_level", "max_sessions", "tls_cert"}
    | {"tls_key", "turn_reserve", *ADDRESSES, *SESSIONS}
)
"""Options that a running server reloads from its file, by their names in the namespace; the parts
in `Front.reloads` apply them."""

SCHEDULING = {
    "min_start_tokens": "text tokens to wait for before speech begins",
    "max_start_wait": "seconds after which speech begins with fewer",
    "utilisation": "share of real time that all turns together may take before more have to wait",
}

_EXAMPLES = """\
examples:
  realtime-tts serve                                      the embedded demo voice
  realtime-tts serve --model Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice
  realtime-tts serve --model ./my-checkpoint --port 9000 --api-key "$(openssl rand -hex 24)"
  realtime-tts serve --random-weights 1.7B                noise at the release's speed, to measure
  realtime-tts serve --devices all                        an engine process for each GPU
  realtime-tts serve --model demo --model ./my-base       both: a session's voice or model picks
  realtime-tts serve --tls-self-signed                    https and wss, for development
  realtime-tts serve --engine fake                        tones instead of speech, no torch
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `serve`. Each group is a table of the configuration file."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="TOML with all that is not said by flags or the environment, read again when it "
        "changes; `realtime-tts config --example` prints one",
    )
    _add_model_arguments(parser.add_argument_group("model"))
    _add_engine_arguments(parser.add_argument_group("engine"))
    voices = parser.add_argument_group("voices")
    voices.add_argument(
        "--voices-dir",
        metavar="FOLDER|s3://BUCKET/PREFIX",
        help="where registered voices and lexicons are kept; servers may share it (default: "
        "the user's data folder, such as ~/.local/share/realtime-tts/voices; with --engine fake: "
        "nowhere; s3:// needs the extra `s3`)",
    )
    _add_scheduler_arguments(parser.add_argument_group("scheduling"))
    _add_server_arguments(parser.add_argument_group("server"))
    _add_access_arguments(parser.add_argument_group("access"))
    _add_tls_arguments(parser.add_argument_group("tls"))
    add_limit_arguments(parser.add_argument_group("limits"))
    add_socket_arguments(parser.add_argument_group("sockets"))
    _add_log_arguments(parser.add_argument_group("log"))


def _add_model_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model",
        action="append",
        help="a Hub id, a checkpoint folder, or demo: the embedded voice (default); repeatable: an "
        "engine for each, and the session's `model` or `voice` picks",
    )
    add_computing_arguments(group)
    group.add_argument(
        "--max-frames",
        type=int,
        help="longest turn, in frames of 80 ms (default: the model's; with --random-weights 64)",
    )
    group.add_argument(
        "--guards",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="end runaway speech; without, for parity checks",
    )


def add_computing_arguments(group: argparse._ActionsContainer) -> None:
    """Add the flags for what computes: --random-weights, --dtype, --eager and --threads."""
    group.add_argument(
        "--random-weights",
        choices=("1.7B", "0.6B", "demo"),
        help="an untrained model with the dimensions of this release, to measure a machine: "
        "every turn is as long as may be, of noise",
    )
    group.add_argument(
        "--dtype",
        choices=("auto", "float32", "bfloat16", "float16"),
        default="auto",
        help="of talker and code predictor, and on a GPU of the codec; auto: what the checkpoint "
        "is stored in on a GPU, float32 on a CPU (default: auto)",
    )
    group.add_argument(
        "--eager",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="plain torch modules on a GPU, too, without kernels and captured programs: to debug",
    )
    group.add_argument(
        "--threads", type=int, help="CPU threads of the model (default: all cores but one, up to 8)"
    )


def _add_engine_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--engine",
        choices=("inline", "process", "fake"),
        help="inline: the model in a thread of this process (default on a CPU); process: in one of "
        "its own, started again if it dies (default on a GPU); fake: tones, no torch",
    )
    device = group.add_mutually_exclusive_group()
    device.add_argument(
        "--device",
        default="auto",
        help="cpu, cuda or cuda:N; auto: an NVIDIA GPU of compute capability 8.0 or later where "
        "there is one, else the CPU (default: auto)",
    )
    device.add_argument(
        "--devices",
        metavar="DEVICE,DEVICE",
        help="an engine process for each, or for every GPU (all); a turn goes to the one with the "
        "most free capacity",
    )
    group.add_argument(
        "--slots",
        type=int,
        help="turns that hold state, per engine (default: on a GPU as many as its memory holds, "
        f"512 at most; on a CPU {_SCHEDULER.slots})",
    )
    group.add_argument(
        "--gpu-memory",
        metavar="SIZE",
        help="what the engine may take of its GPU: 8GiB, or a share like 50%% (default: nearly all "
        "that is free)",
    )
    group.add_argument(
        "--step-seconds", type=float, default=0.002, help="the fake engine's step (default: 0.002)"
    )


def _add_scheduler_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--lead-seconds",
        type=float,
        default=_SCHEDULER.lead_cap,
        help="audio to be ahead of the listener at most, where a session asks for nothing else "
        "(default: %(default)g)",
    )
    add_number_arguments(group, _SCHEDULER, SCHEDULING)
    group.add_argument(
        "--max-queue",
        type=int,
        help="turns that may wait for capacity (default: an eighth of the slots, at least 4)",
    )
    group.add_argument(
        "--queue-seconds",
        type=float,
        default=_SCHEDULER.queue_timeout,
        help="refuse a turn that waits longer, or would (default: %(default)g)",
    )


def _add_server_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the flags for where clients connect, and for what becomes of turns when something
    ends."""
    group.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: 127.0.0.1; 0.0.0.0: all of IPv4, ::: all of IPv6, "
        "'': both)",
    )
    group.add_argument("--port", type=int, default=8000, help="port (default: 8000; 0: any free)")
    group.add_argument(
        "--fronts",
        type=int,
        help="processes that hold the clients' sockets, each over all engines (default: 1; where "
        "engines are processes, one for each 64 slots, two cores for each, 8 at most)",
    )
    group.add_argument(
        "--agent-port",
        type=int,
        metavar="PORT",
        help="answer HAProxy's agent check there: ready, with what is free, drain or down "
        "(default: nowhere)",
    )
    group.add_argument(
        "--drain-seconds",
        type=float,
        default=30.0,
        help="at SIGTERM, let turns finish for so long (default: 30)",
    )
    group.add_argument(
        "--failover-seconds",
        type=float,
        default=30.0,
        help="a turn whose engine failed waits so long for another one, or for the restart "
        "(default: 30; 0: it fails at once)",
    )
    group.add_argument(
        "--marking",
        choices=get_args(Marking),
        default="off",
        help="put a watermark that nobody hears into all sound, so that `realtime-tts detect` can "
        "tell that it is synthetic (default: off)",
    )


def _add_access_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the flags for which clients may connect."""
    group.add_argument(
        "--api-key",
        action="append",
        type=secret,
        metavar="KEY",
        help=f"let in only who has this key; repeatable (default: the environment's "
        f"{KEYS_VARIABLE}, separated by commas, or {KEY_VARIABLE}; none: everybody)",
    )
    group.add_argument(
        "--keys",
        metavar="FILE",
        help="let in who has a key of this file, too, each with limits of its own; "
        "`realtime-tts keys` writes it (extra `keys`)",
    )
    group.add_argument(
        "--usage-database",
        metavar="URL",
        help="where usage by key is recorded: sqlite:////FILE or postgresql+psycopg://… "
        "(default: FILE.usage.db, beside the keys)",
    )
    group.add_argument(
        "--limits-store",
        metavar="URL",
        help="Redis or Valkey in which several servers share the keys' limits, such as "
        "redis://HOST:6379 (default: each server for itself)",
    )
    group.add_argument(
        "--allow-origin",
        action="append",
        metavar="ORIGIN",
        help="web pages that may connect besides the server's own, e.g. https://example.com; "
        "repeatable; * means all",
    )
    group.add_argument(
        "--trusted-proxy",
        action="append",
        metavar="ADDRESS",
        help="a proxy, or a network of them, whose X-Forwarded-For is believed; repeatable "
        "(default: none)",
    )


def _add_tls_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="speak https and wss, with this certificate (PEM, its chain after it if it has one)",
    )
    group.add_argument(
        "--tls-key", metavar="FILE", help="its private key (default: in the certificate's file)"
    )
    group.add_argument(
        "--tls-self-signed",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="the same with a certificate made now, for development (extra `tls`)",
    )


def _add_log_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--log-format", choices=("json", "text"), help="default: text on a terminal, else json"
    )
    group.add_argument("--log-level", choices=LOG_LEVELS, default="info", help="default: info")
    group.add_argument(
        "--tracing",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="a span of OpenTelemetry for every turn, sent by OTLP over HTTP as the environment's "
        "OTEL_* variables say (extra `tracing`)",
    )
