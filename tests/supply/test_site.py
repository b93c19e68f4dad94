"""The site of the documents, as `make docs` has built it (`make test-supply` does that first)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_docs import DOCUMENTS, ROOT

SITE = ROOT / "site"
PAGES = sorted(SITE.rglob("*.html"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_document_is_a_page(document: Path) -> None:
    path = document.relative_to(ROOT)
    if path.parts[0] == ".github":  # the form of a pull request
        return
    folder = path.parent if path.name == "README.md" else path.with_suffix("")
    page = (SITE / folder / "index.html").read_text("utf-8")
    assert "<h1" in page


def test_nothing_is_loaded_from_another_host() -> None:
    assert len(PAGES) > 80
    for page in PAGES:
        text = page.read_text("utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]* src="(https?:)?//', text)
        styles = re.findall(r'<link[^>]* href="(?:https?:)?//[^"]*"', text)
        assert not loaded and not styles, page


def test_the_references_have_what_they_are_for() -> None:
    python = (SITE / "reference" / "python" / "index.html").read_text("utf-8")
    assert 'id="realtime_tts.RealtimeTTS.speak"' in python
    http = (SITE / "reference" / "http" / "index.html").read_text("utf-8")
    assert 'id="create_voice"' in http
    javascript = (SITE / "reference" / "javascript" / "index.html").read_text("utf-8")
    assert "A session with a server" in javascript


def test_the_programs_of_the_documents_are_code_on_their_pages() -> None:
    """A fence that is not understood swallows what follows it."""
    page = (SITE / "docs" / "dialects" / "index.html").read_text("utf-8")
    assert "```" not in re.sub(r"<code>.*?</code>", "", page, flags=re.DOTALL)
