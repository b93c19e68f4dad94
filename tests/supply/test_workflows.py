"""The workflows are what the forge understands, and call what the Makefile has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from realtime_tts.version import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_workflows_fit_their_schema() -> None:
    program = Path(sys.executable).with_name("check-jsonschema")
    words = [str(program), "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(WORKFLOWS) == 2


def test_no_workflow_has_a_secret_and_what_each_calls_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for workflow in WORKFLOWS:
        text = workflow.read_text("utf-8")
        assert "secrets." not in text
        called = set(re.findall(r"make ([a-z-]+)", text))
        assert called and called <= targets, workflow.name
        assert ".ci/run" in text


def test_the_check_of_the_tag_reads_both_versions() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    (step,) = re.findall(r"run: \|\n((?: +test .*\n)+)", text)
    for tag, code in ((f"v{__version__}", 0), ("v0.0.0", 1)):
        environment = os.environ | {"GITHUB_REF_NAME": tag}
        done = subprocess.run(["sh", "-ec", step], cwd=ROOT, env=environment)
        assert done.returncode == code
