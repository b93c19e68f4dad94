"""Reads multipart/form-data, for all that takes files: voices, and other APIs' dictionaries."""

from __future__ import annotations

from collections.abc import Callable

import python_multipart
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File

Put = Callable[[str, bytes, bool], None]
"""Gets the name of a field, its content, and whether it is a file. May raise anything but a
ValueError."""


class BadForm(ValueError):
    """The body is not a form; the message says why."""


def read_form(body: bytes, content_type: str, put: Put, *, most_bytes: int) -> None:
    """Pass each field of a form to `put`. `most_bytes`: of files that are kept in memory.

    Raises BadForm. A hostile form costs seconds of Python.
    """

    def on_field(field: Field) -> None:
        put(_name(field.field_name), field.value or b"", False)

    def on_file(file: File) -> None:
        file.file_object.seek(0)
        put(_name(file.field_name), file.file_object.read(), True)

    headers = {"Content-Type": content_type.encode("latin-1", "replace")}
    try:
        parser = python_multipart.create_form_parser(
            headers, on_field, on_file, config={"MAX_MEMORY_FILE_SIZE": most_bytes}
        )
        parser.write(body)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise BadForm(f"not a valid multipart/form-data body: {error}") from None


def _name(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
