"""KeyFile: the keys of a server, as JSON in a file that only its owner reads.

It is replaced as a whole, so that a reader never sees half of it, and by one writer at a time. A
file that cannot be read is left as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from realtime_tts.access.key import Key
from realtime_tts.errors import ConfigError


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    keys: list[Key]


class KeyFile:
    """The file of keys at `path`. If it does not exist, there are no keys."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Key]:
        """Return the keys by id. Raises ConfigError if the file cannot be read or is malformed."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"the keys in {self.path} cannot be read: {error.strerror}") from None
        try:
            keys = msgspec.json.decode(data, type=_Stored).keys
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self.path} is no file of keys, as `realtime-tts keys create` writes it: {error}"
            ) from None
        for what, values in (("id", [one.id for one in keys]), ("name", [k.name for k in keys])):
            twice = [value for value, count in Counter(values).items() if count > 1]
            if twice:
                raise ConfigError(f"{self.path} has two keys with the {what} {twice[0]!r}")
        return {key.id: key for key in keys}

    def change(self, change: Callable[[dict[str, Key]], None]) -> None:
        """Read the keys, let `change` modify them, and write them back, under an exclusive lock. A
        link to the file stays one: servers that go another way to it must see the change, too.

        Raises ConfigError, and whatever `change` raises: then nothing is written.
        """
        file = KeyFile(self.path.resolve())
        with file._alone():
            keys = file.read()
            change(keys)
            file._write(keys.values())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _write(self, keys: Iterable[Key]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_Stored(list(keys))), indent=2)
        try:
            file, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
            try:
                with os.fdopen(file, "wb") as out:  # mkstemp gave it the mode 0600
                    self._hand_on(file)
                    out.write(data + b"\n")
                    out.flush()
                    os.fsync(out.fileno())
                os.replace(name, self.path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from None

    def _hand_on(self, new: int) -> None:
        """Give the new file the owner and the mode of the present one: the server, which may run as
        another user, has to read that a key was revoked. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):  # it is the first
            found = self.path.stat()
            os.fchown(new, found.st_uid, found.st_gid)
            os.fchmod(new, stat.S_IMODE(found.st_mode))
