"""The bill of materials has every package of the lock, with its hashes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "deploy/requirements.lock"


def test_every_locked_package_is_in_the_bill_of_materials(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (step,) = re.findall(r"^\t\$\(BIN\)/(cyclonedx-py .*)$", makefile, re.MULTILINE)
    file = tmp_path / "sbom.json"
    words = step.replace("dist/sbom.json", str(file)).split()
    program = Path(sys.executable).parent / words[0]
    done = subprocess.run([program, *words[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text("utf-8"))
    assert found["bomFormat"] == "CycloneDX"
    assert found["metadata"]["component"]["name"] == "realtime-tts-server"
    listed = {(one["name"], one["version"]) for one in found["components"]}
    locked = set(re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK.read_text("utf-8"), re.MULTILINE))
    assert listed == locked and len(locked) > 50
    hashes = [one["externalReferences"][0]["hashes"] for one in found["components"]]
    assert all(each and each[0]["alg"] == "SHA-256" for each in hashes)
