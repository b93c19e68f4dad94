"""What the images install is under licences that somebody has looked at."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
POLICY = tomllib.loads((ROOT / "deploy/licences.toml").read_text("utf-8"))
ELSEWHERE = ("cuda-*", "nvidia-*", "httpx2-jsfetch")
"""What torch for CUDA and other systems need: not installed where the tests run."""


def locked() -> set[str]:
    text = (ROOT / "deploy/requirements.lock").read_text("utf-8")
    return set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE))


def stated() -> dict[str, str]:
    """What each installed package says of its licence, by its name."""
    program = Path(sys.executable).with_name("pip-licenses")
    words = [str(program), "--format=json", "--from=all", "--with-system"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    ways = ("License-Expression", "License-Classifier", "License-Metadata")
    return {
        re.sub(r"[-_.]+", "-", one["Name"]).lower(): next(
            (one[way] for way in ways if one.get(way, "UNKNOWN") != "UNKNOWN"), "UNKNOWN"
        )
        for one in json.loads(done.stdout)
    }


def is_allowed(licence: str) -> bool:
    parts = re.split(r" AND | OR |; ", licence)
    return all(part.strip("() ") in POLICY["allowed"] for part in parts)


def is_one_of(name: str, patterns: object) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)  # type: ignore[attr-defined]


def test_every_package_of_an_image_has_a_licence_that_was_looked_at() -> None:
    found = stated()
    expected = {name for name in locked() if not is_one_of(name, ELSEWHERE)}
    assert expected <= set(found) and len(expected) > 40, "`make test-supply` installs them"
    unknown = {
        name: found[name]
        for name in expected
        if not is_allowed(found[name]) and not is_one_of(name, POLICY["reviewed"])
    }
    assert not unknown, "look at these, then add them to deploy/licences.toml"


def test_what_was_looked_at_is_still_there() -> None:
    names = locked()
    stale = [each for each in POLICY["reviewed"] if not any(fnmatch(one, each) for one in names)]
    assert not stale
    page = (ROOT / "docs/licences.md").read_text("utf-8")
    for name in POLICY["reviewed"]:
        assert name in page or name == "httpx2-jsfetch", name


def test_a_licence_that_nobody_looked_at_is_not_allowed() -> None:
    assert is_allowed("MIT AND (Apache-2.0 OR BSD-3-Clause)")
    assert not is_allowed("MIT AND GPL-3.0-only")
    assert not is_allowed("UNKNOWN")


def test_the_javascript_client_brings_nothing_with_it() -> None:
    package = json.loads((ROOT / "client_js/package.json").read_text("utf-8"))
    assert "dependencies" not in package
    assert all(each["optional"] for each in package["peerDependenciesMeta"].values())
    assert set(package["peerDependencies"]) == set(package["peerDependenciesMeta"])
