"""A real Prometheus watches a running server: each fault that is made fires its alert, and no
other one; promtool agrees with the rules, and Grafana's panels ask for what there is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from realtime_tts import demo_voice
from tests.fleet.running import free_port, open_session
from tests.fronts.running import Server, serving, sessions
from tests.server.peers import RawPeer
from tests.serving import serving as serving_with
from tests.waiting import until

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus/alerts.yml"
DASHBOARD = DEPLOY / "grafana/realtime-tts.json"
INCIDENTS = Path(__file__).parents[2] / "docs/incidents.md"
ALERTS = re.findall(r"alert: (\w+)", RULES.read_text())
NO_SERVER = "RealtimeTTSNoServer"  # which is so until the first scrape
LONG = "one " * 100

pytestmark = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="Prometheus is missing: apt-get install prometheus",
)


@dataclass
class Watcher:
    """A Prometheus that scrapes one server twice a second; minutes of the rules are seconds."""

    port: int

    async def query(self, expression: str) -> list[dict[str, Any]]:
        url = f"http://127.0.0.1:{self.port}/api/v1/query"
        async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
            answer = (await http.get(url, params={"query": expression})).json()
        assert answer["status"] == "success", answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    async def firing(self) -> set[str]:
        found = await self.query('ALERTS{alertstate="firing"}')
        return {one["metric"]["alertname"] for one in found}

    async def fires(self, alert: str) -> set[str]:
        """Wait for it; returns all that fire then."""
        async with asyncio.timeout(30):
            while True:
                if alert in (firing := await self.firing()):
                    return firing
                await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def watching(port: int, folder: Path) -> AsyncIterator[Watcher]:
    rules = re.sub(r"\[\d+[mh]\]", "[8s]", RULES.read_text())
    (folder / "alerts.yml").write_text(re.sub(r"for: \d+m", "for: 1s", rules))
    config = (DEPLOY / "prometheus/prometheus.yml").read_text().replace(":8000", f":{port}")
    (folder / "prometheus.yml").write_text(re.sub(r"interval: 5s", "interval: 500ms", config))
    watcher = Watcher(free_port())
    process = await asyncio.create_subprocess_exec(
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{watcher.port}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(httpx2.HTTPError, ValueError):
                    scraped = await watcher.query("up == 1 and on () count(tts_sessions) > 0")
                    if len(scraped) == 1 and NO_SERVER not in await watcher.firing():
                        break
                await asyncio.sleep(0.1)
        yield watcher
    finally:
        process.kill()
        await process.communicate()


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[tuple[Server, Watcher]]:
    async with serving(fronts=2) as server, watching(server.port, tmp_path) as watcher:
        yield server, watcher


@contextlib.contextmanager
def slow_server(step_seconds: float) -> Iterator[int]:
    """Its engine takes longer for a frame than the frame lasts."""
    flags = f"--engine fake --step-seconds {step_seconds} --utilisation 1000"
    with serving_with(*flags.split()) as server:
        yield server.port


def test_promtool_agrees_with_the_rules_and_their_tests() -> None:
    for command in ("check rules alerts.yml", "check config prometheus.yml"):
        subprocess.run(["promtool", *command.split()], cwd=RULES.parent, check=True)
    subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=RULES.parent, check=True)
    tested = (RULES.parent / "alerts_test.yml").read_text()
    assert not [alert for alert in ALERTS if f"alertname: {alert}\n" not in tested]


def test_each_alert_has_a_page_that_says_what_to_do() -> None:
    headings = re.findall(r"^## (\w+)$", INCIDENTS.read_text(), re.MULTILINE)
    assert headings == ALERTS
    for alert in ALERTS:
        assert f"docs/incidents.md#{alert.lower()}" in RULES.read_text()


def lint(page: str) -> None:
    """What promtool thinks of names, units and help texts."""
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=page, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_each_panel_and_rule_asks_for_what_a_server_shows(tmp_path: Path) -> None:
    with serving_with("--engine", "fake", "--fronts", "2") as server:
        async with watching(server.port, tmp_path) as watcher:
            async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
                page = (await http.get(f"{server.url}/metrics")).text
            await asks_for_what_is_shown(page, watcher)


async def asks_for_what_is_shown(page: str, watcher: Watcher) -> None:
    lint(page)
    shown = set(re.findall(r"^# TYPE (tts_\w+) ", page, re.MULTILINE))
    shown.add("tts_certificate_expiry_timestamp_seconds")  # with TLS
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    for expression in [*asked, RULES.read_text()]:
        for name in re.findall(r"\btts_\w+", expression):
            assert {name, re.sub("_(total|bucket|count|sum)$", "", name)} & shown, name
    for expression in asked:
        expression = expression.replace("$__rate_interval", "1m").replace("$instance", ".*")
        await watcher.query(expression)
    assert len(await watcher.query("tts_capacity_turns")) == 1


async def test_an_engine_and_a_front_that_are_killed(watched: tuple[Server, Watcher]) -> None:
    server, watcher = watched
    assert await watcher.firing() == set()
    server.engines[0].send_signal(signal.SIGKILL)
    assert await watcher.fires("RealtimeTTSEngineRestarts") <= {
        "RealtimeTTSEngineRestarts",
        "RealtimeTTSNotReady",
    }
    server.fronts[0].send_signal(signal.SIGKILL)
    await watcher.fires("RealtimeTTSFrontRestarts")


async def test_an_engine_that_cannot_be_loaded_again(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(demo_voice.FOLDER, checkpoint)
    async with serving(model=str(checkpoint)) as server:
        async with watching(server.port, tmp_path) as watcher:
            assert await watcher.firing() == set()
            shutil.rmtree(checkpoint)
            server.engines[0].send_signal(signal.SIGKILL)
            await watcher.fires("RealtimeTTSLoadFails")
            await watcher.fires("RealtimeTTSNotReady")


async def test_a_server_that_is_full_and_one_that_refuses(watched: tuple[Server, Watcher]) -> None:
    server, watcher = watched
    async with sessions(server, 90) as opened:
        await asyncio.gather(*(one.say(LONG) for one in opened))
        await until(lambda: len([one for one in opened if one.of("turn.done")]) > 10)
        await watcher.fires("RealtimeTTSRefuses")
        await watcher.fires("RealtimeTTSSaturated")


async def test_clients_that_do_not_read(watched: tuple[Server, Watcher]) -> None:
    server, watcher = watched
    text = json.dumps({"type": "text", "text": LONG, "end": True}).encode()
    peers = [await RawPeer.connect(server.port, receive_buffer=4_096) for _ in range(12)]
    for peer in peers:
        await peer.upgrade("/v1/tts?lead_ms=30000")
        await peer.frame(0x1, text)
    assert await watcher.fires("RealtimeTTSSlowReaders") == {"RealtimeTTSSlowReaders"}
    for peer in peers:
        peer.sock.close()


async def test_an_engine_that_is_too_slow(tmp_path: Path) -> None:
    with slow_server(step_seconds=0.12) as port:
        async with watching(port, tmp_path) as watcher:

            async def speak() -> None:
                while True:
                    session = await open_session(port)
                    await session.say("one two three four five six")
                    await session.until("turn.done")
                    await session.close()

            speaking = [asyncio.create_task(speak()) for _ in range(3)]
            await watcher.fires("RealtimeTTSLateFirstSound")
            await watcher.fires("RealtimeTTSGaps")
            await watcher.fires("RealtimeTTSObjectiveBurnsFast")
            await watcher.fires("RealtimeTTSObjectiveBurnsSlowly")
            for task in speaking:
                assert not task.done(), task
                task.cancel()
            await asyncio.wait(speaking)


async def test_a_server_that_is_gone(tmp_path: Path) -> None:
    async with serving(fronts=1) as server:
        async with watching(server.port, tmp_path) as watcher:
            server.process.kill()
            assert await watcher.fires("RealtimeTTSDown") == {"RealtimeTTSDown"}


async def test_settings_that_cannot_be_used(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[limits]\nmax-sessions = 5\n")
    with serving_with("--engine", "fake", "--config", str(settings)) as server:
        async with watching(server.port, tmp_path) as watcher:
            assert await watcher.firing() == set()
            settings.write_text("[limits]\nmax-sessions = many\n")
            assert await watcher.fires("RealtimeTTSNotReloaded") == {"RealtimeTTSNotReloaded"}


async def test_one_burst_of_refusals_before_which_there_was_none(tmp_path: Path) -> None:
    with serving_with("--engine", "fake", "--slots", "1", "--max-queue", "0") as server:
        async with watching(server.port, tmp_path) as watcher:
            opened = [await open_session(server.port) for _ in range(12)]
            await asyncio.gather(*(one.say(LONG) for one in opened))
            await watcher.fires("RealtimeTTSRefuses")
            await watcher.fires("RealtimeTTSTurnsFail")
            await asyncio.gather(*(one.close() for one in opened))
