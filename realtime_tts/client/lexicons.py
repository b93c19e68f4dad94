"""The lexicons of a server: list, store, show, delete. Plain HTTP, blocking."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from realtime_tts.client.http import HttpClient, quoted


class LexiconClient(HttpClient):
    """Lists, stores and removes the lexicons of a server, over HTTP; see `HttpClient`.

    `ref` is a lexicon's name, for its newest version, or `name@version`.
    """

    path = "/v1/lexicons"

    def lexicons(self) -> list[dict[str, Any]]:
        """Return the newest version of each lexicon, without its entries."""
        return list(self._json("GET", "")["lexicons"])

    def get(self, ref: str) -> dict[str, Any]:
        """Return one version, with its `entries`."""
        return self._json("GET", f"/{quoted(ref)}")

    def pls(self, ref: str) -> bytes:
        """Return one version as a PLS file."""
        return self._request("GET", f"/{quoted(ref)}?format=pls")

    def put(
        self,
        name: str,
        entries: Mapping[str, str] | Sequence[Mapping[str, Any]],
        *,
        title: str | None = None,
    ) -> dict[str, Any]:
        """Store a lexicon, or its next version: words and what to say for them, or entries with
        `word`, `say` and, if case matters, `case_sensitive`."""
        asked: dict[str, Any] = {"entries": entries} | ({"title": title} if title else {})
        body = json.dumps(asked).encode()
        return self._json("PUT", f"/{quoted(name)}", body, "application/json")

    def put_pls(self, name: str, file: bytes) -> dict[str, Any]:
        """Store a lexicon, or its next version, with the entries of a PLS file."""
        return self._json("PUT", f"/{quoted(name)}", file, "application/pls+xml")

    def delete(self, ref: str) -> None:
        """Remove one version, or a lexicon with all its versions."""
        self._request("DELETE", f"/{quoted(ref)}")
