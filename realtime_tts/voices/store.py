"""VoiceStore: voice files in object storage, by whole objects, through fsspec.

An object is written in one request and appears as a whole. `create` is a conditional write, so of
two servers that create the same name one is told that it exists.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from realtime_tts.errors import ConfigError
from realtime_tts.extras import install
from realtime_tts.voices.file import MOST_BYTES, SUFFIX

_AT_ONCE = 64
"""Objects that are read together: at 100 kB each, a few megabytes."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}" + re.escape(SUFFIX))
_VERSION_KEYS = "ETag", "etag", "mtime", "LastModified", "created"
_PATIENCE = {"connect_timeout": 3, "read_timeout": 10, "retries": {"max_attempts": 2}}


class VoiceStore:
    """The objects right under one prefix. Thread-safe.

    All methods raise OSError: FileExistsError and FileNotFoundError as they say, and for a store
    that does not answer or refuses, one whose message says which.
    """

    def __init__(self, url: str) -> None:
        """`url`: `s3://BUCKET/PREFIX`. Raises ConfigError without the package that speaks to it,
        and for a kind of store that nobody knows."""
        self.url = url.rstrip("/")
        options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
        if url.startswith("s3:"):
            options["config_kwargs"] = _PATIENCE
        try:
            from fsspec.core import url_to_fs

            self._files, self._prefix = url_to_fs(self.url, **options)
        except ImportError as error:
            raise ConfigError(
                f"voices in {url} need the extra `s3`: {install('s3')} ({error})"
            ) from None
        except ValueError as error:
            raise ConfigError(f"voices cannot be kept in {url}: {error}") from None

    def versions(self) -> dict[str, str]:
        """The names of all objects that may be voices, each with what changes when the object does.
        A prefix with nothing under it has none."""
        with self._told("list"):
            self._files.invalidate_cache()
            try:
                found = self._files.ls(self._prefix, detail=True)
            except FileNotFoundError:  # nothing is under the prefix yet, or there is no bucket
                self._files.ls(self._prefix.partition("/")[0])
                return {}
        sized = {one["name"].rpartition("/")[2]: one for one in found if one["type"] == "file"}
        return {
            name: _version(one)
            for name, one in sized.items()
            if _NAME.fullmatch(name) and one["size"] <= MOST_BYTES
        }

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """What these objects hold; those that are gone are left out."""
        wanted = sorted(names)
        for start in range(0, len(wanted), _AT_ONCE):
            paths = {self._path(name): name for name in wanted[start : start + _AT_ONCE]}
            with self._told("read"):
                found = self._files.cat(list(paths), on_error="return")
                for one in found.values():
                    if isinstance(one, Exception) and not isinstance(one, FileNotFoundError):
                        raise one
            for path, data in found.items():
                if isinstance(data, bytes):
                    yield paths[path], data

    def create(self, name: str, data: bytes) -> None:
        """Raises FileExistsError if there is one of this name."""
        with self._told("write"):
            self._files.pipe_file(self._path(name), data, mode="create")

    def replace(self, name: str, data: bytes) -> None:
        """Whatever is there."""
        with self._told("write"):
            self._files.pipe_file(self._path(name), data)

    def delete(self, name: str) -> None:
        """Idempotent."""
        with self._told("delete from"), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Whatever the store's library raises, as OSError."""
        try:
            yield
        except FileExistsError:
            raise
        except Exception as error:  # botocore's and aiohttp's have no base in common
            why = str(error) or type(error).__name__
            raise OSError(f"cannot {what} {self.url}: {why}") from error


def _version(details: dict[str, Any]) -> str:
    changing = [str(details[key]) for key in _VERSION_KEYS if key in details]
    return "/".join([str(details["size"]), *changing])
