"""The documents do what they say: programs run, commands exist, links lead somewhere."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from realtime_tts.audio.formats import ENCODINGS, parse_format
from realtime_tts.cli import command_parser
from realtime_tts.config import ServerConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.load import engine_loader, load_tokenizer
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.server.run import RunningServer, running
from realtime_tts.version import __version__
from tts_scheduler import SchedulerConfig

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
AUDIO = (ROOT / "docs" / "audio.md").read_text(encoding="utf-8")
CLIENTS = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
TUTORIALS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.md"))
}
CALL = re.compile(r"(?:.*\| )?realtime-tts ")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
DOCUMENTS = sorted(
    document
    for pattern in (
        "*.md",
        ".github/*.md",
        "docs/**/*.md",
        "client_js/*.md",
        "examples/**/*.md",
        "realtime_tts/*/*.md",
        "scheduler/*.md",
        "tools/*/*.md",
    )
    for document in ROOT.glob(pattern)
)


def blocks(language: str, document: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document, re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """What `#…` may name in a document: its headings, as GitHub makes addresses of them."""
    text = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        times = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each) is not None for each in found)
        found.add(f"{slug}-{times}" if times else slug)
    return found


def commands(text: str = README) -> list[str]:
    """Every line after a `$ ` in a document's console blocks, quoted ones included, and whole where
    it goes on in the next."""
    lines = [line.removeprefix("> ") for line in text.replace("\\\n", "").splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo_voice() -> AsyncIterator[RunningServer]:
    engine = EngineConfig(max_frames=20, scheduler=SchedulerConfig(slots=2))  # soon warm
    link = InProcessEngine(engine_loader(engine), engine.scheduler)
    async with running(ServerConfig(port=0), link, partial(load_tokenizer, engine)) as server:
        yield server


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("program", [*blocks("python"), *blocks("python", AUDIO)])
async def test_the_readme_s_program_runs_against_the_demo_voice(
    demo_voice: RunningServer, program: str
) -> None:
    program = program.replace("ws://127.0.0.1:8000", demo_voice.websocket_url)
    program = program.replace("http://127.0.0.1:8000", demo_voice.url)
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


def test_the_readme_can_be_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) <= 150


def test_the_readme_s_figures_are_there_and_name_a_machine() -> None:
    measured = README.split("## How fast")[1].split("\n## ")[0]
    assert "TTFA p50 / p95" in measured and "cores" in measured and "commit" in measured


def test_the_readme_has_programs_and_commands_to_check() -> None:
    assert blocks("python") and len(commands()) >= 5


@pytest.mark.parametrize(
    "command",
    [
        *(c for page in DOCUMENTS for c in commands(page.read_text("utf-8")) if CALL.match(c)),
        *(line for block in blocks("bash", PERFORMANCE) for line in block.splitlines()),
    ],
)
def test_the_commands_parse(command: str) -> None:
    command = re.split(r" (?:\| ffplay|>) ", command)[0]
    words = shlex.split(CALL.sub("realtime-tts ", command), comments=True)
    assert words[0] == "realtime-tts"
    command_parser(words[1:]).parse_args(words[1:])


@pytest.mark.parametrize(
    "command",
    [c for page in (README, CONTRIBUTING) for c in commands(page) if c.startswith("make ")]
    + re.findall(r"^ *entry: (.*)$", HOOKS, re.MULTILINE),
)
def test_make_targets_of_documents_and_of_the_commit_hook_exist(command: str) -> None:
    words = shlex.split(command, comments=True)
    assert words[0] == "make"
    subprocess.run([*words, "--dry-run"], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), f"{document.name} links to {path}"
        if anchor:
            assert anchor in anchors(target), f"{document.name}: {target.name} has no #{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_a_document_names_exist(document: Path) -> None:
    """`server/app.py` is looked for in the package, `tests/…` and the like from the root."""
    homes = (ROOT, ROOT / "realtime_tts", document.parent)
    for name in re.findall(
        r"`([\w./-]+/[\w-]+\.(?:py|js|md|txt|safetensors))`", document.read_text()
    ):
        assert any((home / name).exists() for home in homes), f"{document.name} names {name}"


def test_commits_that_documents_name_are_in_the_history() -> None:
    """Figures say what was measured: whoever doubts one can go there."""
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True)
    if git(["git", "rev-parse", "--is-shallow-repository"]).stdout.strip() != "false":
        pytest.skip("this is no checkout with its whole history")
    named = {
        commit: document.name
        for document in DOCUMENTS
        for commit in re.findall(r"`([0-9a-f]{7,8})`", document.read_text("utf-8"))
    }
    assert len(named) > 10
    history = git(["git", "rev-list", "HEAD"]).stdout.split()
    known = {commit[:length] for commit in history for length in (7, 8)}
    lost = {commit: name for commit, name in named.items() if commit not in known}
    assert not lost, f"documents name commits that are not there: {lost}"


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        document = ahead.pop()
        reached.add(document)
        links = re.findall(r"\]\(([^)#\s]+\.md)[)#]", document.read_text("utf-8"))
        linked = {(document.parent / link).resolve() for link in links if "://" not in link}
        ahead += sorted(linked - reached - set(ahead))
    # GitHub shows this one by itself, in the form of a new pull request.
    alone = {ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md"}
    assert set(DOCUMENTS) - alone <= reached


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_one_page_with_its_reasons_and_is_in_the_index(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    number, title = int(decision.name[:4]), text.splitlines()[0].partition(". ")[2]
    assert text.startswith(f"# {number}. ") and len(text.splitlines()) <= 60
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    index = (decision.parent / "README.md").read_text(encoding="utf-8")
    assert f"| [{number}]({decision.name}) | {title} |" in index


def test_decisions_are_numbered_from_one_without_a_hole() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == [*range(1, len(DECISIONS) + 1)]


def test_the_changelog_begins_with_what_is_not_released_yet() -> None:
    """`Unreleased`, or the version that is next. What nobody ever received was not fixed."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    titles = [section.partition("\n")[0] for section in sections]
    assert titles[0] == "Unreleased" or titles[0].endswith(" (not released yet)")
    assert __version__ in [title.split(" ")[0] for title in titles]
    for section in sections:
        headings = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert len(headings) == len(set(headings)), headings
    if len(sections) == 1:
        assert "### Fixed" not in changelog and "Before," not in changelog


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_that_need_a_client_name_one_that_is_tested(document: Path) -> None:
    """`make test-clients` runs them: ```python client=NAME in README.md and docs/ is for
    tests/clients/NAME."""
    marked = re.findall(r"^```(\w*) client=(\S+)$", document.read_text("utf-8"), re.MULTILINE)
    for language, client in marked:
        file = {"python": "requirements.txt", "js": "package.json"}[language]
        assert (ROOT / "tests" / "clients" / client / file).exists(), f"no client {client}"
        assert document.parent in (ROOT, ROOT / "docs"), "programs are looked for nowhere else"


def test_the_new_addresses_of_other_vendors_clients_are_those_of_tested_programs() -> None:
    dialects = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!you have|---)(.*) \| .* \| (.*) \|$", TUTORIALS["moving"], re.M)
    assert len(rows) >= 9
    for client, now in rows:
        for code in re.findall(r"`([^`]+)`", now):
            assert code in dialects or code in CLIENTS, f"{client}: no program has {code}"


def test_the_table_of_clients_shows_a_part_of_their_programs() -> None:
    """The programs are run, so what the table shows of them works."""
    rows = re.findall(
        r"^\| (?!client|---).* \| (.*) \| \[.*\]\(([^)#]+)[^)]*\) \|$", CLIENTS, re.MULTILINE
    )
    assert len(rows) >= 20
    for shown, path in rows:
        text = (ROOT / "docs" / path).read_text(encoding="utf-8")
        for code in re.findall(r"`([^`]+)`", shown):
            assert code in text, f"{path} has no {code}"
