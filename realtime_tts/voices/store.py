"""VoiceStore: voice files in object storage, read and written as whole objects with fsspec.

An object is written in one request and appears as a whole. `create` is a conditional write: if two
servers create the same name, one of them gets a FileExistsError.
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
"""Number of objects that are read together: a few megabytes, at 100 kB each."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}" + re.escape(SUFFIX))
_VERSION_KEYS = "ETag", "etag", "mtime", "LastModified", "created"
_PATIENCE = {"connect_timeout": 3, "read_timeout": 10, "retries": {"max_attempts": 2}}
_PROOF = {"ListObjectsV2": "IsTruncated", "PutObject": "ETag", "GetObject": "ETag"}
"""What the answer of every S3 server to these calls has."""
_CALL_SECONDS = 30.0
"""Seconds in which a store must have answered a call in full. Without an end, a call waits for as
long as an answer comes in drips, and a write for as long as the store does not ask for the object's
content ("100 Continue"): no timeout above is for either."""


class VoiceStore:
    """The voice files directly under one prefix of a store. Thread-safe.

    Every method raises OSError if the store does not answer or refuses; the message says which.
    """

    def __init__(self, url: str) -> None:
        """`url`: `s3://BUCKET/PREFIX`. Raises ConfigError if the package for this kind of store is
        not installed, or the kind is unknown."""
        self.url = url.rstrip("/")
        options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
        try:
            from fsspec.core import url_to_fs

            if url.startswith("s3:"):
                options |= {"config_kwargs": _PATIENCE, "session": _checking_session()}
            self._files, self._prefix = url_to_fs(self.url, **options)
        except ImportError as error:
            raise ConfigError(
                f"voices in {url} need the extra `s3`: {install('s3')} ({error})"
            ) from None
        except ValueError as error:
            raise ConfigError(f"voices cannot be kept in {url}: {error}") from None
        # botocore itself tries again, for half a minute; s3fs would do all of that five times.
        self._files.retries = 1

    def versions(self) -> dict[str, str]:
        """Return the names of all objects that may be voices, each with its version: a string that
        changes whenever the object does. Empty if nothing is under the prefix."""
        with self._os_errors("list"):
            self._files.invalidate_cache()
            try:
                found = self._call("ls", self._prefix, detail=True)
            except FileNotFoundError:  # nothing is under the prefix yet, or there is no bucket
                self._call("ls", self._prefix.partition("/")[0])
                return {}
        sized = {one["name"].rpartition("/")[2]: one for one in found if one["type"] == "file"}
        return {
            name: _version(one)
            for name, one in sized.items()
            if _NAME.fullmatch(name) and one["size"] <= MOST_BYTES
        }

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the name and content of each of these objects, except those that are gone."""
        wanted = sorted(names)
        for start in range(0, len(wanted), _AT_ONCE):
            paths = {self._path(name): name for name in wanted[start : start + _AT_ONCE]}
            with self._os_errors("read"):
                found = self._call("cat", list(paths), on_error="return")
                for one in found.values():
                    if isinstance(one, Exception) and not isinstance(one, FileNotFoundError):
                        raise one
            for path, data in found.items():
                if isinstance(data, bytes):
                    yield paths[path], data

    def create(self, name: str, data: bytes) -> None:
        """Create an object. Raises FileExistsError if there is one with this name."""
        with self._os_errors("write"):
            self._call("pipe_file", self._path(name), data, mode="create")

    def replace(self, name: str, data: bytes) -> None:
        """Write an object, replacing one with this name if there is one."""
        with self._os_errors("write"):
            self._call("pipe_file", self._path(name), data)

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""
        with self._os_errors("delete from"), contextlib.suppress(FileNotFoundError):
            self._call("rm_file", self._path(name))

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        if self._files.async_impl:
            options["timeout"] = _CALL_SECONDS
        return getattr(self._files, method)(*arguments, **options)

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    @contextlib.contextmanager
    def _os_errors(self, what: str) -> Iterator[None]:
        """Raise any error of the store's library as an OSError that names the store."""
        try:
            yield
        except FileExistsError:
            raise
        except Exception as error:  # botocore's and aiohttp's have no base in common
            silent = "it does not answer" if isinstance(error, TimeoutError) else ""
            why = str(error) or silent or type(error).__name__
            raise OSError(f"cannot {what} {self.url}: {why}") from error


def _checking_session() -> Any:
    """Return a session of S3 whose calls raise OSError for the success of another kind of server.

    Without this, the login page of a proxy is an empty listing, and whatever is written to it is
    taken as stored: botocore does not mind if all that should be in an answer is missing.
    """
    from aiobotocore.session import AioSession

    def check(http_response: Any, model: Any, parsed: dict[str, Any], **_: Any) -> None:
        status, proof = http_response.status_code, _PROOF.get(model.name)
        deleted = model.name != "DeleteObject" or status == 204
        if status < 300 and not (deleted and (proof is None or proof in parsed)):
            kind = http_response.headers.get("content-type", "no content type")
            raise OSError(
                f"the answer ({status}, {kind}) is not one of S3: "
                "is AWS_ENDPOINT_URL right, or is a proxy in between?"
            )

    session = AioSession()
    session.register("after-call.s3", check)
    return session


def _version(details: dict[str, Any]) -> str:
    changing = [str(details[key]) for key in _VERSION_KEYS if key in details]
    return "/".join([str(details["size"]), *changing])
