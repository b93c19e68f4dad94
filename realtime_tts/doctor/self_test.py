"""Has a server of its own speak one sentence: what it computes with, and how fast."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from realtime_tts.bench.local_server import ServerDidNotStart, local_server
from realtime_tts.client import RealtimeTTS
from realtime_tts.client.http import HttpClient
from realtime_tts.configuration.options import PREFIX
from realtime_tts.doctor.findings import Finding, Verdict
from realtime_tts.errors import RealtimeTTSError

_SENTENCE = "This is a test of the speech server. It should sound clear, and never stop early."
_AHEAD_MS = 30_000
"""The lead to ask for: all sound is made at once, so that its speed is not that of a listener."""


class _Metrics(HttpClient):
    path = "/metrics"

    def engines(self) -> Iterator[dict[str, str]]:
        """Yield what each engine computes with, by label."""
        from prometheus_client.parser import text_string_to_metric_families

        page = self._request("GET", "").decode()
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name == "tts_engine_info":
                    yield sample.labels


async def spoken_findings(flags: Sequence[str]) -> list[Finding]:
    """Start `serve` with these flags, on a free port, and speak a sentence.

    Its environment has none of the server's own variables: keys and certificates are not tried.
    """
    environment = {name: it for name, it in os.environ.items() if not name.startswith(PREFIX)}
    key = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="realtime-tts-") as folder:
        log = Path(folder) / "log"
        words = [*flags, "--log-format", "json"]
        keys = {f"{PREFIX}API_KEYS": key}  # in the environment: others see command lines
        try:
            async with local_server(words, environment=environment | keys, log=log) as url:
                return [*_engines(url, key), *_slower(log), *await _figures(url, key)]
        except ServerDidNotStart as error:
            what, _, last_words = str(error).partition("\n")
            return [Finding("start", Verdict.FAILED, what, quoted=last_words)]
        except RealtimeTTSError as error:
            return [Finding("speech", Verdict.FAILED, str(error))]


def _engines(url: str, key: str) -> Iterator[Finding]:
    engines = list(_Metrics(url, api_key=key).engines())
    for labels in engines:
        parts = [labels["gpu"], labels["dtype"], f"{labels['programs']} programs"]
        parts += [f"{labels['kernels']} operations", f"{labels['talker']} talker"]
        parts += [f"{labels['predictor']} code predictor"]
        text = f"{labels['model']} on {labels['device']}: {', '.join(filter(None, parts))}"
        yield Finding("engine", Verdict.OK, text)
    if not engines:
        yield Finding("engine", Verdict.OK, "tones, no model")


def _slower(log: Path) -> Iterator[Finding]:
    """Yield what the log warns of: each reason why something runs slower than it could."""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue  # what the start prints for people
        if isinstance(said, dict) and said.get("level") == "warning":
            parts = (said.get(part) for part in ("event", "what", "reason"))
            yield Finding("engine", Verdict.WARNING, ": ".join(str(part) for part in parts if part))


async def _figures(url: str, key: str) -> list[Finding]:
    from realtime_tts.metrics import SLO_TTFA_SECONDS

    async with RealtimeTTS(url, api_key=key, lead_ms=_AHEAD_MS) as tts:
        speech = tts.speak(_SENTENCE)
        begun = time.perf_counter()
        async for _ in speech:
            pass
        took = time.perf_counter() - begun
    done = speech.result
    if done is None or done.ttfa_ms is None or not done.samples:
        return [Finding("speech", Verdict.FAILED, "the server made no sound")]
    return [judged_ttfa(done.ttfa_ms, SLO_TTFA_SECONDS * 1000), judged_rtf(took, done.seconds)]


def judged_ttfa(ttfa_ms: float, limit_ms: float) -> Finding:
    """Judge the time to first audio of one turn, against the objective of the dashboards."""
    text = f"TTFA {ttfa_ms:.0f} ms (objective: {limit_ms:.0f} ms)"
    if ttfa_ms > limit_ms:
        return Finding("speech", Verdict.WARNING, text, "a faster machine, or one that is idle")
    return Finding("speech", Verdict.OK, text)


def judged_rtf(took: float, seconds: float) -> Finding:
    """Judge the seconds of work for each second of speech: from 1 on, a listener hears gaps."""
    text = f"RTF {took / seconds:.2f} ({seconds:.1f} s of speech in {took:.1f} s)"
    if took >= seconds:
        advice = "this machine cannot speak in real time"
        return Finding("speech", Verdict.FAILED, text, advice)
    return Finding("speech", Verdict.OK, text)
