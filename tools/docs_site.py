"""Hooks of mkdocs.yml: pages from the repository's documents, and the generated reference.

A page has the path of its file, so relative links between documents work. A link to a file that is
no page becomes a link into the repository if `repo_url` is set, and plain text otherwise.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import realtime_tts
from realtime_tts.server.openapi_page import html_body, openapi

ROOT = Path(__file__).parents[1]
_DOCUMENTS = (
    "*.md",
    "docs/**/*.md",
    "client_js/*.md",
    "examples/**/*.md",
    "realtime_tts/*/*.md",
    "scheduler/*.md",
    "tools/*/*.md",
)
_MEDIA = ("docs/**/*.png", "docs/**/*.svg", "docs/**/*.opus", "realtime_tts/demo_voice/*.png")
_FENCED = re.compile(r"^(?P<fence>```+).*?^(?P=fence)[ ]*$", re.DOTALL | re.MULTILINE)
_CLIENT = re.compile(r"^(```\w+) client=\w+$", re.MULTILINE)
"""Matches the tests' mark of a program, which the highlighter does not know."""
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_SOUND = re.compile(r'<a href="([^"]+\.opus)">[^<]*</a>')
_PLAYER = r'\g<0><br><audio controls preload="none" src="\1"></audio>'
_PYTHON = "reference/python.md"
_HTTP = "reference/http.md"
_JAVASCRIPT = "reference/javascript.md"
_DECLARATIONS = {
    "realtime-tts": "api.d.ts",
    "What the server says": "messages.d.ts",
    "realtime-tts/player": "player.d.ts",
    "realtime-tts/react": "react.d.ts",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the same anchors as in the repository."""
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def slug(heading: str, separator: str) -> str:
    """Return the anchor of a heading, without `#`."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", separator)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of `docs_dir` by the repository's documents, pictures and sounds; the
    theme's own files stay."""
    ours = (".md", ".png", ".svg", ".opus")
    kept = [file for file in files if not file.src_uri.endswith(ours)]
    for pattern in (*_DOCUMENTS, *_MEDIA):
        for path in sorted(ROOT.glob(pattern)):
            if "node_modules" not in path.parts:
                name = path.relative_to(ROOT).as_posix()
                kept.append(File.generated(config, name, abs_src_path=str(path)))
    made = {_PYTHON: _python_page(), _JAVASCRIPT: _javascript_page(), _HTTP: "# HTTP\n"}
    kept += [File.generated(config, name, content=text) for name, text in made.items()]
    return Files(kept)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files without a page into the repository, and remove marks of programs."""
    folder = posixpath.dirname(page.file.src_uri)

    def linked(link: re.Match[str]) -> str:
        text, target = link.groups()
        path, _, _ = target.partition("#")
        if "://" in target or not path or page.file.src_uri.startswith("reference/"):
            return link[0]
        name = posixpath.normpath(posixpath.join(folder, path))
        if files.get_file_from_path(name) is not None or not (ROOT / name).exists():
            return link[0]  # MkDocs warns about missing files
        return f"[{text}]({config.repo_url.rstrip('/')}/{name})" if config.repo_url else text

    parts, at = [], 0
    for block in _FENCED.finditer(markdown):
        program = _CLIENT.sub(r"\1", block[0])
        parts += [_LINK.sub(linked, markdown[at : block.start()]), program]
        at = block.end()
    return "".join([*parts, _LINK.sub(linked, markdown[at:])])


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put a player behind each link to a sound, and insert the server's own page of its HTTP
    routes."""
    if page.file.src_uri != _HTTP:
        return _SOUND.sub(_PLAYER, html)
    where = "<p>A running server has this page at <code>/docs</code>, and the document that it is "
    return f"{html}{where}made of at <code>/openapi.json</code>.</p>{html_body(openapi())}"


def _python_page() -> str:
    names = [name for name in realtime_tts.__all__ if not name.startswith("__")]
    errors = [name for name in names if _is_error(name)]
    whole = "    options: {inherited_members: true}\n"
    shown = [f"::: realtime_tts.{name}\n{whole}" for name in names if name not in errors]
    raised = [f"::: realtime_tts.{name}\n" for name in errors]
    head = "# The Python client\n\nEverything here is imported from `realtime_tts`.\n\n"
    return head + "\n".join([*shown, *raised])


def _is_error(name: str) -> bool:
    found: Any = getattr(realtime_tts, name)
    return isinstance(found, type) and issubclass(found, Exception)


def _javascript_page() -> str:
    """Return the page of the client's types, as they are written: editors show the same."""
    parts = [
        "# The JavaScript client\n\nThe types that the package declares, with what they mean.\n"
    ]
    for title, name in _DECLARATIONS.items():
        text = (ROOT / "client_js" / "types" / name).read_text("utf-8")
        parts.append(f"## {title}\n\n```ts\n{text}```\n")
    return "\n".join(parts)
