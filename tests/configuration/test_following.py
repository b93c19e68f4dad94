"""Files are looked at again and again, and taken over once they have stopped changing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.configuration import following as module
from realtime_tts.configuration.following import Follower, Fresh
from realtime_tts.configuration.stamps import Stamp, stamp
from realtime_tts.errors import ConfigError
from realtime_tts.metrics import Metrics
from tests.waiting import until

LOOK = 0.02
SUCCEEDED = "tts_config_last_reload_successful"


class FakeSource:
    """A file whose text is a log level; `fault` is raised instead of reading it."""

    def __init__(self, file: Path) -> None:
        self.paths = [file]
        self.at_start = stamp(file)
        self.looks = 0
        self.read_texts: list[str] = []
        self.fault: Exception | None = None

    @property
    def files(self) -> dict[Path, Stamp]:
        self.looks += 1
        return dict.fromkeys(self.paths, self.at_start)

    def read(self) -> Fresh:
        self.read_texts.append(self.paths[0].read_text())
        if self.fault is not None:
            raise self.fault
        return Fresh(ServerConfig(), [], [], lambda: None)


class Following:
    def __init__(self, source: FakeSource) -> None:
        self.source = source
        self.applied: list[ServerConfig] = []
        self.metrics = Metrics()
        self.follower = Follower(source, self._apply, self.metrics)

    async def _apply(self, config: ServerConfig) -> None:
        self.applied.append(config)

    async def looked(self, times: int) -> None:
        """Wait until the files were looked at so many times more."""
        looks = self.source.looks + times
        await until(lambda: self.source.looks >= looks)

    @property
    def succeeded(self) -> float | None:
        return self.metrics.registry.get_sample_value(SUCCEEDED)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_LOOK_SECONDS", LOOK)
    yield


@pytest.fixture
async def following(tmp_path: Path) -> AsyncIterator[Following]:
    (tmp_path / "file").write_text("first")
    one = Following(FakeSource(tmp_path / "file"))
    task = asyncio.create_task(one.follower.run())
    await one.looked(2)  # the first look is over
    yield one
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_a_file_that_does_not_change_is_not_read(following: Following) -> None:
    await following.looked(10)
    assert following.source.read_texts == [] and following.succeeded == 1


async def test_a_change_before_the_first_look_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("first")
    one = Following(FakeSource(tmp_path / "file"))
    (tmp_path / "file").write_text("second, while the server started")
    task = asyncio.create_task(one.follower.run())
    await until(lambda: one.applied)
    await one.looked(10)
    assert one.source.read_texts == ["second, while the server started"]
    task.cancel()


async def test_a_file_is_read_once_when_it_has_been_written_to_its_end(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The looks are counted: however busy the machine is, the file changes between two of them."""
    stamps = iter([(1, 1, 1), (1, 2, 1), (1, 3, 1)])
    last = (1, 4, 1)
    monkeypatch.setattr(module, "stamp", lambda path: next(stamps, last))
    await until(lambda: following.applied)
    await following.looked(10)
    assert len(following.applied) == 1
    assert next(stamps, None) is None, "it was read before the last change"


@pytest.mark.parametrize("fault", [ConfigError("no"), RuntimeError("a bug")], ids=repr)
async def test_a_fault_is_told_once_and_the_next_change_is_taken_over(
    following: Following, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    following.source.fault = fault
    following.source.paths[0].write_text("second")
    await until(lambda: following.succeeded == 0)
    await following.looked(10)
    told = [one for one in caplog.records if one.message == "config.not_reloaded"]
    assert len(told) == 1 and following.applied == []
    following.source.fault = None
    following.source.paths[0].write_text("the third")
    await until(lambda: following.succeeded == 1)
    assert following.source.read_texts[-1] == "the third" and len(following.applied) == 1


async def test_a_file_that_goes_and_comes_back_is_read(following: Following) -> None:
    file = following.source.paths[0]
    following.source.fault = ConfigError("cannot be read")
    file.rename(file.with_name("elsewhere"))
    following.source.paths.insert(0, file.with_name("elsewhere"))  # what `read` reads
    await until(lambda: following.succeeded == 0)
    following.source.fault = None
    file.with_name("elsewhere").rename(file)
    following.source.paths.pop(0)
    await until(lambda: following.succeeded == 1)


async def test_files_that_new_settings_name_are_looked_at_from_then_on(
    following: Following, tmp_path: Path
) -> None:
    (tmp_path / "another").write_text("a certificate")
    following.source.paths.append(tmp_path / "another")
    following.follower.ask()
    await until(lambda: len(following.applied) == 1)
    await following.looked(5)
    (tmp_path / "another").write_text("a renewed certificate")
    await until(lambda: len(following.applied) == 2)
