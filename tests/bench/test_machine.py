from pathlib import Path

import pytest

from realtime_tts.bench import machine


def test_outside_a_checkout_the_environment_names_the_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "a" / "b" / "machine.py"))
    monkeypatch.delenv(machine.COMMIT_VARIABLE, raising=False)
    assert machine.commit() == ""
    monkeypatch.setenv(machine.COMMIT_VARIABLE, "0123456789ab")
    assert machine.describe_machine()["commit"] == "0123456789ab"


def test_a_machine_has_a_processor_and_cores() -> None:
    found = machine.describe_machine()
    assert found["cpu"] and int(found["cores"]) >= 1
    assert {"gpu", "gpu_driver", "python", "torch", "realtime_tts", "commit"} <= set(found)
