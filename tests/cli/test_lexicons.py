"""`realtime-tts lexicons`, against a server in a process of its own, and without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realtime_tts.cli import main
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.client.lexicons import LexiconClient
from realtime_tts.errors import HandshakeRefused, RequestError
from realtime_tts.lexicons.pls import read_pls, write_pls
from realtime_tts.text.lexicon import Entry

FILES = {
    "brands.json": '{"SQL": "sequel", "Nguyen": "win"}',
    "entries.json": '{"title": "x", "entries": [{"word": "SQL", "say": "sequel"}]}',
    "brands.txt": "# ours\nSQL = sequel\n\nNew York=Nu Yoak\n",
    "brands.pls": write_pls([Entry("SQL", "sequel")]).decode(),
}


def test_files_of_every_kind_are_stored_listed_shown_and_removed(
    fake_server: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--url", fake_server, "--api-key", key]
    for version, (name, text) in enumerate(FILES.items(), 1):
        (tmp_path / name).write_text(text)
        assert main(["lexicons", "add", "brands", str(tmp_path / name), *server]) == ExitStatus.OK
        count = "1 entry" if name in ("entries.json", "brands.pls") else "2 entries"
        assert f"stored brands@{version}: {count}\n" in capsys.readouterr().out
    assert main(["lexicons", "list", *server]) == ExitStatus.OK
    shown = capsys.readouterr().out
    assert "brands@4" in shown and "1 to 4" in shown
    assert main(["lexicons", "show", "brands@3", *server]) == ExitStatus.OK
    found = json.loads(capsys.readouterr().out)
    assert [entry["word"] for entry in found["entries"]] == ["New York", "SQL"]
    assert main(["lexicons", "show", "brands", "--pls", *server]) == ExitStatus.OK
    assert read_pls(capsys.readouterr().out.encode()) == [Entry("SQL", "sequel")]
    assert main(["lexicons", "remove", "brands@1", *server]) == ExitStatus.OK
    assert main(["lexicons", "remove", "brands", *server]) == ExitStatus.OK
    assert "deleted brands\n" in capsys.readouterr().out
    assert main(["lexicons", "remove", "brands", *server]) == ExitStatus.USAGE
    assert "no lexicon 'brands'" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.txt"
    assert main(["lexicons", "add", "a", str(file)]) == ExitStatus.USAGE
    told = capsys.readouterr().err
    assert told == f"realtime-tts: {file} cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.txt", "SQL", "line 1 must be WORD=SAID"),
        ("a.json", "{", "cannot be read"),
        ("a.json", "[" * 100_000, "nested too deep"),
        ("a.pls", "SQL=sequel", "not a PLS file"),
        ("a.json", '{"SQL": ""}', "1 to 128 characters"),
    ],
)
def test_a_file_that_is_no_lexicon_is_an_error_in_one_line(
    fake_server: str,
    key: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    says: str,
) -> None:
    (tmp_path / name).write_text(text)
    words = ["lexicons", "add", "a", str(tmp_path / name), "--url", fake_server, "--api-key", key]
    assert main(words) == ExitStatus.USAGE
    told = capsys.readouterr().err
    assert says in told and told.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["lexicons", "remove", ""],
        ["lexicons", "show", ""],
        ["lexicons", "add", "", "brands.txt"],
        ["voices", "--delete", ""],
    ],
)
def test_an_empty_name_is_an_error_that_says_so(
    fake_server: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (tmp_path / "brands.txt").write_text("SQL=sequel")
    given = [str(tmp_path / word) if word == "brands.txt" else word for word in words]
    assert main([*given, "--url", fake_server, "--api-key", key]) == ExitStatus.USAGE
    assert "the name is empty" in capsys.readouterr().err


def test_the_client_stores_entries_and_says_what_is_wrong(fake_server: str, key: str) -> None:
    client = LexiconClient(fake_server, api_key=key)
    entries = [{"word": "US", "say": "you ess", "case_sensitive": True}]
    stored = client.put("client", entries, title="Ours")
    assert client.get(stored["ref"])["entries"] == entries
    assert "client" in [each["id"] for each in client.lexicons()]
    client.delete("client")
    with pytest.raises(RequestError, match="no lexicon 'client'"):
        client.get("client")
    with pytest.raises(RequestError, match="1 to 64 characters"):
        client.put("no name", {"a": "b"})
    with pytest.raises(HandshakeRefused, match="valid API key"):
        LexiconClient(fake_server).lexicons()
