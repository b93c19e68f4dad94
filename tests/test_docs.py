"""The README does what it says: its program runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from realtime_tts.audio.formats import ENCODINGS, parse_format
from realtime_tts.cli import command_parser
from realtime_tts.config import ServerConfig
from realtime_tts.engine.inline import InlineEngine
from realtime_tts.engine.load import engine_loader, load_tokenizer
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.server.run import running

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TLS = (ROOT / "docs" / "tls.md").read_text(encoding="utf-8")
AUDIO = (ROOT / "docs" / "audio.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        ROOT / "scheduler" / "README.md",
        *ROOT.glob("client_js/*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
)


def blocks(language: str, document: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document, re.DOTALL | re.MULTILINE)


def commands(text: str = README) -> list[str]:
    """Every line after a `$ ` in a document's console blocks, quoted ones included."""
    lines = [line.removeprefix("> ") for line in text.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("program", [*blocks("python"), *blocks("python", AUDIO)])
async def test_the_readme_s_program_runs_against_the_demo_voice(program: str) -> None:
    engine = EngineConfig(max_frames=20)
    link = InlineEngine(engine_loader(engine), engine.scheduler)
    async with running(ServerConfig(port=0), link, partial(load_tokenizer, engine)) as server:
        program = program.replace("ws://127.0.0.1:8000", server.websocket_url)
        program = program.replace("http://127.0.0.1:8000", server.url)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        output, errors = await asyncio.wait_for(process.communicate(), timeout=60)
    assert process.returncode == 0, errors.decode()
    assert output.decode().splitlines()[0].endswith(" bytes")


def test_the_formats_in_the_table_exist() -> None:
    rows = [
        [re.findall(r"`(\w+)`", cell) for cell in line.split("|")[2:4]]
        for line in AUDIO.splitlines()
        if re.search(r"\d (m|µ)s \|$|as without \|$", line) and "CPU" not in line
    ]
    assert len(rows) >= 12
    for encodings, names in rows:
        assert {parse_format(name).encoding for name in names} == {*encodings} - {"wav", "webm"}
    assert {each for encodings, _ in rows for each in encodings} > {*ENCODINGS}


def test_the_readme_s_figures_are_there_and_name_a_machine() -> None:
    measured = README.split("## Measured")[1].split("\n## ")[0]
    assert "TTFA p50 / p95" in measured and "cores" in measured and "commit" in measured


def test_the_readme_has_programs_and_commands_to_check() -> None:
    assert blocks("python") and len(commands()) >= 5


@pytest.mark.parametrize("command", [c for c in commands() + commands(TLS) if "realtime-tts " in c])
def test_the_commands_parse(command: str) -> None:
    words = shlex.split(command.split("|")[-1], comments=True)
    assert words[0] == "realtime-tts"
    command_parser(words[1:]).parse_args(words[1:])


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("make ")])
def test_the_readme_s_make_targets_exist(command: str) -> None:
    subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_that_need_a_client_name_one_that_is_tested(document: Path) -> None:
    """`make test-clients` runs them: ```python client=NAME in README.md and docs/ is for
    tests/clients/NAME."""
    marked = re.findall(r"^```(\w*) client=(\S+)$", document.read_text("utf-8"), re.MULTILINE)
    for language, client in marked:
        file = {"python": "requirements.txt", "js": "package.json"}[language]
        assert (ROOT / "tests" / "clients" / client / file).exists(), f"no client {client}"
        assert document.parent in (ROOT, ROOT / "docs"), "programs are looked for nowhere else"


def test_the_table_of_clients_shows_a_part_of_their_programs() -> None:
    """The programs are run, so what the table shows of them works."""
    table = README.split("## Use it from")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!client|---).* \| (.*) \| \[.*\]\(([^)]+)\) \|$", table, re.MULTILINE)
    assert len(rows) >= 20
    for shown, target in rows:
        path, _, anchor = target.partition("#")
        text = (ROOT / path).read_text(encoding="utf-8") if path else README
        for code in re.findall(r"`([^`]+)`", shown):
            assert code in text.replace(table, ""), f"{path or 'README.md'} has no {code}"
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
        assert not anchor or anchor in anchors, f"{path} has no heading for #{anchor}"
