"""Reads multipart/form-data, for all that takes files: voices, and other APIs' dictionaries."""

from __future__ import annotations

from collections.abc import Callable

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, FormParser, parse_options_header

Put = Callable[[str, bytes, bool], None]
"""Gets the name of a field, its content, and whether it is a file. May raise anything but a
ValueError."""


class BadForm(ValueError):
    """The body is not a form; the message says why."""


def read_form(body: bytes, content_type: str, put: Put) -> None:
    """Pass each field of a form to `put`. Raises BadForm. A hostile one costs seconds of Python."""
    kind, options = parse_options_header(content_type.encode("latin-1", "replace"))
    if kind != b"multipart/form-data":
        raise BadForm(f"expected a form as multipart/form-data, got {content_type[:80]!r}")
    if not (boundary := options.get(b"boundary")):
        raise BadForm(
            f"the Content-Type {content_type[:80]!r} has no boundary: let the HTTP library that "
            "makes the form set this header"
        )
    whole = False

    def on_field(field: Field) -> None:
        put(_name(field.field_name), field.value or b"", False)

    def on_file(file: File) -> None:
        file.file_object.seek(0)
        put(_name(file.field_name), file.file_object.read(), True)

    def on_end() -> None:
        nonlocal whole
        whole = True

    config = {"MAX_MEMORY_FILE_SIZE": len(body)}  # no file of it is written to the disk
    try:
        parser = FormParser(
            "multipart/form-data", on_field, on_file, on_end, boundary=boundary, config=config
        )
        parser.write(body)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise BadForm(f"not a valid multipart/form-data body: {error}") from None
    if not whole:
        raise BadForm("the form ends before its last boundary: it was cut off, or made wrong")


def _name(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
