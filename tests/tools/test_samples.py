"""The listening samples are small, named in their README, and hold speech."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

FOLDER = Path(__file__).parents[2] / "docs" / "samples"
FILES = sorted(FOLDER.glob("*.opus"))
README = (FOLDER / "README.md").read_text("utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sample_is_named_small_and_not_silent(file: Path) -> None:
    assert f"({file.name})" in README
    assert file.stat().st_size < 60_000
    samples, rate = soundfile.read(file)
    assert 3 < len(samples) / rate < 15
    assert np.abs(samples).max() > 0.1


def test_all_samples_that_were_asked_for_are_there() -> None:
    names = {file.stem.partition("-")[0] for file in FILES}
    assert names == {"voice", "teacher", "layout", "seam", "interrupt"}
    assert sum(file.stat().st_size for file in FILES) < 500_000
