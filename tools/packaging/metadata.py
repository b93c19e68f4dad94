"""Fills in, at build time, what a package's page on an index says about its repository.

The repository's address is written down nowhere else: a release is built by a workflow, whose
environment has it (`GITHUB_SERVER_URL`, `GITHUB_REPOSITORY`). A package built elsewhere names no
address, and the README's links into the repository become plain text, since they would lead nowhere
on the page of an index.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")
"""Matches a picture, or a link to a file of the repository, in the README."""


class RepositoryMetadata(MetadataHookInterface):
    def update(self, metadata: dict[str, object]) -> None:
        readme = Path(self.root, "README.md").read_text("utf-8")
        repository = address(os.environ)
        version = f"v{metadata['version']}"
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(readme, repository, version),
        }
        metadata["urls"] = {} if repository is None else urls(repository)


def address(environment: Mapping[str, str]) -> str | None:
    """Return the URL of the repository that a workflow runs in, or None outside of a workflow."""
    name = environment.get("GITHUB_REPOSITORY")
    return None if not name else f"{environment['GITHUB_SERVER_URL']}/{name}"


def urls(repository: str) -> dict[str, str]:
    """Return the project's URLs by the labels that package indexes know."""
    return {
        "Homepage": repository,
        "Documentation": f"{repository}/tree/main/docs",
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


def absolute(text: str, repository: str | None, version: str) -> str:
    """Return the text with absolute links into `version` of the repository, or without links."""

    def link(found: re.Match[str]) -> str:
        picture, label, target = found.groups()
        if repository is None:
            return "" if picture else label
        kind = "raw" if picture else "blob"
        return f"{picture}[{label}]({repository}/{kind}/{version}/{target})"

    return _LINK.sub(link, text)
