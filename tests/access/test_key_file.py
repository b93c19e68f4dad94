"""Keys in their file: what is stored, who may read it, and what happens to one that is broken."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from realtime_tts.access.access import Access
from realtime_tts.access.key import KeyLimits, id_in
from realtime_tts.access.key_file import KeyFile
from realtime_tts.config import AccessConfig
from realtime_tts.errors import ConfigError
from tests.access.conftest import Keys
from tests.waiting import until

GOOD = {"id": "a1", "name": "acme", "digest": "0" * 64, "created": 1.0}


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is looked at twenty times a second."""
    monkeypatch.setattr("realtime_tts.access.access._LOOK_SECONDS", 0.05)


@pytest.mark.parametrize("there", [True, False])
async def test_a_file_that_is_not_there_is_told_at_the_start(
    keys: Keys, caplog: pytest.LogCaptureFixture, there: bool
) -> None:
    if there:
        keys.create("acme")
    async with Access(AccessConfig(str(keys.path))).running():
        assert ("keys.no_file" in caplog.text) != there


@pytest.mark.usefixtures("quick_looks")
async def test_a_file_that_is_taken_away_is_told(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    keys.create("acme")
    async with Access(AccessConfig(str(keys.path))).running():
        keys.path.unlink()
        await until(lambda: "keys.no_file" in caplog.text)


def rename_over(path: Path, data: bytes) -> Iterator[None]:
    new = path.with_suffix(".new")
    new.write_bytes(data)
    yield
    new.replace(path)


def truncate_and_write(path: Path, data: bytes) -> Iterator[None]:
    with path.open("wb", buffering=0) as file:
        yield
        file.write(data[: len(data) // 2])
        yield
        file.write(data[len(data) // 2 :])


def delete_and_write(path: Path, data: bytes) -> Iterator[None]:
    path.unlink()
    yield
    path.write_bytes(data)


def swap_link(path: Path, data: bytes) -> Iterator[None]:
    """As Kubernetes does it: the file is a link into a folder that is a link."""
    folder, link = path.parent / f"of-{time.time_ns()}", path.parent / "..data"
    folder.mkdir()
    (folder / path.name).write_bytes(data)
    new = link.with_name("..data_tmp")
    new.symlink_to(folder.name)
    yield
    new.replace(link)
    if not path.is_symlink():
        path.unlink()
        yield
        path.symlink_to(f"..data/{path.name}")


@pytest.mark.parametrize("replace", [rename_over, truncate_and_write, delete_and_write, swap_link])
async def test_however_the_file_is_replaced_the_keys_in_it_stay_valid(
    keys: Keys, replace: Callable[[Path, bytes], Iterator[None]]
) -> None:
    """`replace` stops at every state of the file that a look may find."""
    stays, goes = keys.create("stays").encode(), keys.create("goes").encode()
    both = keys.path.read_bytes()
    keys.revoke("goes")
    one = keys.path.read_bytes()
    access = Access(AccessConfig(str(keys.path)))
    ended: list[str] = []
    access.on_revoked = lambda account: ended.append(account.key.name)
    valid = False
    for data in (both, one, both, one):
        for _ in replace(keys.path, data):
            await access._look()
            assert access.account_of(stays) is not None
            assert (access.account_of(goes) is not None) is valid
        await access._look()
        valid = data == both
        assert access.account_of(stays) is not None
        assert (access.account_of(goes) is not None) is valid
    assert ended == ["goes", "goes"]


@pytest.mark.usefixtures("quick_looks")
async def test_keys_end_when_their_file_stays_away(keys: Keys) -> None:
    secret = keys.create("acme").encode()
    access = Access(AccessConfig(str(keys.path)))
    async with access.running():
        keys.path.unlink()
        await until(lambda: access.account_of(secret) is None)


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize("there", [True, False])
async def test_a_file_that_is_put_back_as_it_was_is_no_fault_any_more(
    keys: Keys, there: bool
) -> None:
    """An operator who sees the alert takes the broken file away again."""
    if there:
        keys.create("acme")
    kept = keys.path.with_suffix(".kept")
    access = Access(AccessConfig(str(keys.path)))
    failing = access.failing["keys"]
    async with access.running():
        if there:
            keys.path.rename(kept)
        keys.path.write_text("broken")
        await until(failing)
        keys.path.unlink()
        if there:
            kept.rename(keys.path)
        await until(lambda: not failing())


def test_a_file_has_no_secret_and_is_for_its_owner_only(keys: Keys) -> None:
    secret = keys.create("acme", limits={"turns": 3})
    assert secret.split("_", 2)[2] not in keys.path.read_text()
    assert secret not in keys.path.read_text()
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    (key,) = keys.file.read().values()
    assert key.is_of(secret.encode())
    assert not key.is_of(secret[:-1].encode())
    assert id_in(secret.encode()) == key.id
    assert key.limits == KeyLimits(turns=3)


def test_secrets_have_256_bits_and_no_two_are_alike(keys: Keys) -> None:
    made = {keys.create(f"k{number}") for number in range(20)}
    assert len(made) == 20
    for secret in made:
        _, _, random = secret.split("_", 2)
        assert len(random) == 43, "32 bytes in base64url"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "truncated"),
        (b"\x00\xff\x00", "malformed"),
        (b"\xff\xfe{", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"keys": [{"id": "a"}]}', r"missing required field `name` - at `\$.keys\[0\]`"),
        (json.dumps({"keys": [GOOD | {"digest": "secret"}]}).encode(), "digest"),
        (json.dumps({"keys": [GOOD | {"limits": {"turns": 0}}]}).encode(), "limits.turns"),
        (json.dumps({"keys": [GOOD | {"limits": {"turn": 1}}]}).encode(), "turn"),
        (json.dumps({"keys": [GOOD | {"share": 0}]}).encode(), "share"),
        (json.dumps({"keys": [GOOD, GOOD]}).encode(), "two keys with the id 'a1'"),
        (json.dumps({"keys": [GOOD, GOOD | {"id": "b"}]}).encode(), "the name 'acme'"),
    ],
)
def test_garbage_says_where_it_is_wrong_and_is_not_overwritten(
    tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=told) as raised:
        KeyFile(path).read()
    assert str(path) in str(raised.value)
    with pytest.raises(ConfigError):
        KeyFile(path).change(lambda keys: keys.clear())
    assert path.read_bytes() == content


def test_who_could_read_the_file_can_read_it_after_a_change(keys: Keys) -> None:
    keys.create("acme")
    keys.path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(keys.path, 12_345, 12_345)
    before = keys.path.stat()
    keys.revoke("acme")
    after = keys.path.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert stat.S_IMODE(after.st_mode) == 0o640


def test_a_change_by_a_link_reaches_all_who_have_the_file(keys: Keys, tmp_path: Path) -> None:
    keys.create("acme")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "keys.json"
    link.symlink_to(keys.path)
    KeyFile(link).change(dict.clear)
    assert link.is_symlink() and keys.file.read() == KeyFile(link).read() == {}


def test_a_change_that_fails_changes_nothing(keys: Keys) -> None:
    keys.create("acme")
    before = keys.path.read_bytes()

    def fail(found: object) -> None:
        keys.file.read().clear()
        raise ConfigError("no")

    with pytest.raises(ConfigError, match="^no$"):
        keys.file.change(fail)
    assert keys.path.read_bytes() == before
    assert [path.name for path in keys.path.parent.iterdir()] == ["keys.json"]


def test_of_many_who_write_at_once_none_is_lost(keys: Keys) -> None:
    names = [f"k{number}" for number in range(30)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(keys.create, names))
    assert sorted(key.name for key in keys.file.read().values()) == sorted(names)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        KeyFile(tmp_path / "nowhere" / "keys.json").change(lambda keys: None)
