"""docs/dialects.md does what it says about OpenAI: its programs run, its tables are the code's.

Programs that begin with ```LANGUAGE client=NAME run in that client's environment: tests/clients.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig
from realtime_tts.dialects.openai_request import VOICES
from tests.dialects.document import DOCUMENT, section
from tests.server.speaking import speaking

HEADER = b"RIFF\xff\xff\xff\xffWAVEfmt "


def blocks(language: str) -> list[str]:
    """The programs about OpenAI's API."""
    fenced = rf"^```{language}\n(.*?)^```"
    return re.findall(fenced, section("OpenAI"), re.DOTALL | re.MULTILINE)


async def run(server: Any, folder: Path, program: str, *command: str) -> str:
    """What the program prints, with its server's address in place of the document's."""
    program = program.replace("http://127.0.0.1:8000", server.running.url)
    process = await asyncio.create_subprocess_exec(
        *command, program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, errors = await asyncio.wait_for(process.communicate(), timeout=60)
    assert process.returncode == 0, errors.decode()
    return output.decode()


def spoken_file(folder: Path) -> bytes:
    data = (folder / "speech.wav").read_bytes()
    assert data.startswith(HEADER) and len(data) > 48_000
    return data


def test_there_are_programs_to_run() -> None:
    assert [len(blocks(language)) for language in ("console", "python")] == [1, 2]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
async def test_the_curl_command_speaks(tmp_path: Path) -> None:
    command = blocks("console")[0].removeprefix("$ ").replace('"ava"', '"alto"')
    async with speaking() as server:
        await run(server, tmp_path, command, "bash", "-c")
        assert len(spoken_file(tmp_path)) == 44 + len("The tide is coming in.") * 3_840


@pytest.mark.parametrize("index", range(2))
async def test_the_python_programs_speak(tmp_path: Path, index: int) -> None:
    async with speaking() as server:
        printed = await run(server, tmp_path, blocks("python")[index], sys.executable, "-c")
        if "stream_to_file" in blocks("python")[index]:
            spoken_file(tmp_path)
        else:
            sizes = [int(line.split()[0]) for line in printed.splitlines()]
            assert sum(sizes) == len("The tide is coming in.") * 3_840


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_javascript_program_parses() -> None:
    check = ["node", "--input-type=module", "--check"]
    subprocess.run(
        check, input=blocks("js client=openai_node")[0], text=True, check=True, capture_output=True
    )


def test_the_table_of_voices_is_the_code_s() -> None:
    rows = re.findall(r"^\| (`.*`) \| (\w+) \| (\w+) \|$", DOCUMENT, re.MULTILINE)
    told = {
        name: (demo, released)
        for names, demo, released in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert told == VOICES


def test_the_figures_are_the_code_s() -> None:
    limits = LimitsConfig()
    assert f"{limits.max_text_chars:,} characters" in DOCUMENT
    assert f"{limits.max_instructions_chars:,} characters" in DOCUMENT
    assert f"{limits.max_lead_ms / 1000:.0f} s ahead" in DOCUMENT
