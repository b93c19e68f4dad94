"""What several fronts carry: `python -m tests.fronts.throughput --fronts 1,4 --streams 4000`.

Fake engines with the step costs of an H200, in processes of their own, and clients in several
processes. Prints a JSON object a measurement. `--starts N`: the time from the text to the first
packet, where N whole texts begin at once. `--streams N`: so many streams in real time; how many
packets were late, what a packet cost the fronts, and how long a frame took from its engine step to
the client. With several fronts one is then killed, and what that costs is counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import psutil

from realtime_tts.cli.serve import allow_open_files
from realtime_tts.config import LimitsConfig, ServerConfig, SocketConfig
from realtime_tts.engine import links
from realtime_tts.engine.load import load_tokenizer
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.fronts.supervisor import supervise
from realtime_tts.logs import configure_logging
from realtime_tts.metrics import Metrics
from realtime_tts.server.run import serve
from tests.fronts import gpu_costs
from tests.fronts.load_clients import say
from tts_scheduler import SchedulerConfig

SETTLE_SECONDS = 4.0
STREAMS_PER_SECOND = 400.0  # that begin

# The server process -------------------------------------------------------------------------


def be_server(arguments: argparse.Namespace) -> int:
    """Serve; print the port when all is ready."""
    vars(links)["engine_loader"] = lambda config: gpu_costs.load
    scheduler = SchedulerConfig(slots=gpu_costs.SLOTS, utilisation=arguments.utilisation)
    devices = ("cpu",) * arguments.engines
    engine = EngineConfig(kind="fake", devices=devices, scheduler=scheduler)
    config = ServerConfig(
        port=0,
        access_log=False,
        log_level="warning",
        limits=LimitsConfig(max_sessions=20_000),
        socket=SocketConfig(ping_interval=3_600.0),  # our clients do not answer
    )
    allow_open_files()
    configure_logging("json", "warning", access_log=False)
    metrics = Metrics()
    if int(arguments.fronts) > 1:
        return supervise(
            config,
            (engine,),
            int(arguments.fronts),
            metrics,
            lambda *stage: None,
            on_ready=lambda port, link: say(port),
        )
    return serve(
        config,
        lambda: links.make_links((engine,), metrics, lambda *stage: None),
        lambda: load_tokenizer(engine),
        metrics,
        on_ready=say,
    )


class Child:
    """A process that answers line by line, in JSON. What else it prints is kept apart from what
    others print, and shown if it ends in place of an answer."""

    def __init__(self, name: str, *words: object) -> None:
        self._name = name
        self._said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def ask(self, line: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `answer` tells why
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def answer(self) -> Any:
        """What it says next. Ends this process with the reason if it has ended."""
        assert self.process.stdout is not None
        if line := self.process.stdout.readline():
            return json.loads(line)
        status = self.process.wait()
        self._said.seek(0)
        sys.exit(f"{self._name} ended with status {status}:\n{self._said.read()}")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._said.close()


class Server:
    """The server process, as the one that measures sees it."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.port = port
        self.main = psutil.Process(process.pid)

    @property
    def processes(self) -> list[psutil.Process]:
        return [self.main, *self.main.children()]

    @property
    def fronts(self) -> list[psutil.Process]:
        found = [one for one in self.processes if "fronts.process" in " ".join(one.cmdline())]
        return found or [self.main]

    def seconds(self) -> dict[int, float]:
        """CPU time by process."""
        return {one.pid: sum(one.cpu_times()[:2]) for one in self.processes}

    def figures(self) -> dict[str, float]:
        url = f"http://127.0.0.1:{self.port}/metrics"
        page = urllib.request.urlopen(url, timeout=10).read().decode()
        lines = [line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}


@contextlib.contextmanager
def server(fronts: int, engines: int, utilisation: float) -> Iterator[Server]:
    flags = ["--fronts", str(fronts), "--engines", str(engines), "--utilisation", str(utilisation)]
    child = Child("the server", "-m", "tests.fronts.throughput", "--serve", *flags)
    try:
        yield Server(child.process, child.answer())
    finally:
        for _ in range(2):  # the second one ends what still speaks
            child.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        child.process.wait()
        child.kill()


# What is measured ---------------------------------------------------------------------------


class Clients:
    """Several client processes, which answer line by line."""

    def __init__(self, processes: int, *words: object) -> None:
        command = ("-m", "tests.fronts.load_clients", *words)
        self._children = [
            Child(f"client process {number} of {processes}", *command)
            for number in range(1, processes + 1)
        ]
        self._answers()

    def ask(self, line: str = "") -> list[Any]:
        for child in self._children:
            child.ask(line)
        return self._answers()

    def end(self) -> None:
        for child in self._children:
            child.kill()

    def _answers(self) -> list[Any]:
        return [child.answer() for child in self._children]


def milliseconds(values: list[float], share: float) -> float:
    return round(sorted(values)[round(share * (len(values) - 1))] * 1e3, 2)


def measure_starts(fronts: int, arguments: argparse.Namespace) -> None:
    with server(fronts, 1, 0.8) as one:
        share = arguments.starts // arguments.clients
        clients = Clients(arguments.clients, "start", one.port, share, arguments.rounds)
        try:
            answers = clients.ask(str(time.monotonic() + 0.5))
        finally:
            clients.end()
    found = [seconds for answer in answers for seconds in answer]
    parts = {f"p{share:.0%}"[:-1]: milliseconds(found, share) for share in (0.5, 0.95, 0.99)}
    say({"fronts": fronts, "starts": arguments.starts, "turns": len(found)} | parts)


def measure_streams(fronts: int, arguments: argparse.Namespace) -> None:
    engines = -(-arguments.streams // gpu_costs.SLOTS)
    share, rate = arguments.streams // arguments.clients, STREAMS_PER_SECOND / arguments.clients
    with server(fronts, engines, 1_000.0) as one:
        words = "stream", one.port, share, rate, arguments.seconds
        clients = Clients(arguments.clients, *words)
        try:
            time.sleep(SETTLE_SECONDS)
            report_streams(one, clients, arguments.seconds)
            if fronts > 1:
                report_kill(one, clients)
        finally:
            clients.end()


def report_streams(one: Server, clients: Clients, seconds: float) -> None:
    clients.ask()
    before, spent, begun = one.figures(), one.seconds(), time.monotonic()
    time.sleep(seconds)
    after, took = one.figures(), time.monotonic() - begun
    cores = {pid: (now - spent[pid]) / took for pid, now in one.seconds().items()}
    told = clients.ask()
    change = {name: after[name] - before.get(name, 0.0) for name in after}
    parts = {share: max(answer["ages"][share] for answer in told) for share in (500, 990, 999)}
    fronts = [cores[front.pid] for front in one.fronts]
    packets = change["tts_packets_total"] / took
    say(
        {
            "fronts": len(fronts),
            "streams": after["tts_open_turns"],
            "packets_per_second": round(packets),
            "front_us_per_packet": round(sum(fronts) / packets * 1e6, 1),
            "packets_late": change["tts_packets_late_total"],
            "sockets_lost": sum(answer["lost"] for answer in told),
            "frames_seen": sum(answer["seen"] for answer in told),
            "way_ms": {f"p{share / 10:g}": round(at * 1e3, 2) for share, at in parts.items()},
            "cores_of_fronts": [round(share, 2) for share in fronts],
            "cores_of_first_process": round(cores[one.main.pid], 2),
        }
    )


def report_kill(one: Server, clients: Clients) -> None:
    victim = one.fronts[0]
    sockets = [socket for socket in victim.net_connections("tcp") if socket.status == "ESTABLISHED"]
    late = one.figures()["tts_packets_late_total"]
    victim.kill()
    time.sleep(3.0)
    figures = one.figures()
    say(
        {
            "sockets_of_the_killed": sum(one.port == socket.laddr.port for socket in sockets),
            "sockets_lost": sum(answer["lost"] for answer in clients.ask()),
            "packets_late": figures["tts_packets_late_total"] - late,
            "fronts_after_three_seconds": figures["tts_fronts"],
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fronts", default="1,4")
    parser.add_argument("--starts", type=int, default=0, metavar="N")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--streams", type=int, default=0, metavar="N")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=4, help="processes (default: 4)")
    parser.add_argument("--serve", action="store_true", help="be the server process")
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--utilisation", type=float, default=0.8)
    arguments = parser.parse_args()
    if arguments.serve:
        sys.exit(be_server(arguments))
    for fronts in map(int, arguments.fronts.split(",")):
        if arguments.starts:
            measure_starts(fronts, arguments)
        if arguments.streams:
            measure_streams(fronts, arguments)


if __name__ == "__main__":
    main()
