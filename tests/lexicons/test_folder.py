"""The folder of lexicons: whole files only, versions that never change, shared, and never fatal."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from itertools import chain
from pathlib import Path

import pytest

from realtime_tts.lexicons import folder as module
from realtime_tts.lexicons.errors import (
    CannotStore,
    LexiconError,
    LexiconTooLarge,
    Overtaken,
    TooManyLexicons,
    UnknownLexicon,
)
from realtime_tts.lexicons.file import MAX_ENTRIES, CorruptLexiconError, checked, read_entries
from realtime_tts.lexicons.folder import LexiconFolder, Version
from realtime_tts.text.lexicon import Entry

SQL, WIN = Entry("SQL", "sequel"), Entry("Nguyễn", "win", True)


def entries(version: Version) -> list[Entry]:
    return list(chain.from_iterable(read_entries(version.path)))


def refs(folder: LexiconFolder) -> list[str]:
    return [version.ref for name in folder.names() for version in folder.versions(name)]


def test_a_lexicon_is_found_with_all_that_is_known_and_survives_a_restart(tmp_path: Path) -> None:
    LexiconFolder(tmp_path / "deep" / "lexicons").put("brands", [SQL, WIN], "Our brands")
    folder = LexiconFolder(tmp_path / "deep" / "lexicons")
    version = folder.get("brands")
    header = folder.header(version)
    assert (version.ref, header.title, header.entries) == ("brands@1", "Our brands", 2)
    assert header.created.endswith("Z")
    assert entries(version) == [SQL, WIN]


def test_what_replaces_a_lexicon_is_its_next_version(tmp_path: Path) -> None:
    folder, other = LexiconFolder(tmp_path), LexiconFolder(tmp_path)
    assert folder.put("brands", [SQL]).ref == "brands@1"
    assert other.put("brands", [WIN]).ref == "brands@2"
    assert folder.get("brands").ref == "brands@2"
    assert entries(folder.get("brands@1")) == [SQL]
    assert entries(other.get("brands")) == [WIN]
    for number in range(3, 12):
        assert folder.put("brands", [SQL]).number == number
    assert other.get("brands").number == 11, "numbers are compared as numbers"


def test_a_version_is_found_where_the_folder_s_clock_is_behind_and_coarse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = time.time() - 60

    def discard(unfinished: Path) -> None:
        unfinished.unlink()
        os.utime(tmp_path, (past, past))

    monkeypatch.setattr(module, "discard", discard)
    folder = LexiconFolder(tmp_path)
    assert [folder.put("brands", [SQL]).number for _ in range(3)] == [1, 2, 3]


def test_a_version_goes_alone_and_a_lexicon_with_all_of_them(tmp_path: Path) -> None:
    folder, other = LexiconFolder(tmp_path), LexiconFolder(tmp_path)
    for _ in range(3):
        folder.put("brands", [SQL])
    folder.put("medical", [WIN])
    other.delete("brands@2")
    assert refs(folder) == ["brands@1", "brands@3", "medical@1"]
    with pytest.raises(UnknownLexicon, match="'brands' has no version '2'; it has 1, 3"):
        folder.get("brands@2")
    folder.delete("brands")
    assert refs(other) == ["medical@1"]
    with pytest.raises(UnknownLexicon, match="GET /v1/lexicons lists"):
        other.delete("brands")


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "Brands", "", "\0", "a/b", "x" * 65, "a@1", ".a", "ä"]
)
def test_a_name_that_could_be_a_path_is_none(tmp_path: Path, name: str) -> None:
    folder = LexiconFolder(tmp_path / "lexicons")
    with pytest.raises(LexiconError, match="1 to 64 characters out of a-z"):
        folder.put(name, [SQL])
    for ref in (name, name + "@1"):
        with pytest.raises(UnknownLexicon):
            folder.get(ref)
        with pytest.raises(UnknownLexicon):
            folder.delete(ref)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", ["0", "01", "-1", "1.0", "", " 1", "١", "9" * 30])
def test_a_version_has_one_spelling(tmp_path: Path, number: str) -> None:
    folder = LexiconFolder(tmp_path)
    folder.put("brands", [SQL])
    with pytest.raises(UnknownLexicon):
        folder.get(f"brands@{number}")


def store(path: Path, count: int) -> None:
    for _ in range(count):
        LexiconFolder(path).put("brands", [SQL])


def test_servers_that_store_at_the_same_time_get_a_version_each(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=store, args=(tmp_path, 10)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert [version.number for version in LexiconFolder(tmp_path).versions("brands")] == [
        *range(1, 31)
    ]
    assert not list(tmp_path.glob(".unfinished*"))


def test_a_version_that_must_follow_another_follows_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LexiconFolder(tmp_path)
    assert folder.put("brands", [SQL], after=0).number == 1
    for after in (0, 2):
        with pytest.raises(Overtaken, match="'brands'"):
            folder.put("brands", [WIN], after=after)
    known = folder._listed()
    monkeypatch.setattr(folder, "_listed", lambda: known)
    LexiconFolder(tmp_path).put("brands", [WIN])  # another server, unseen so far
    with pytest.raises(Overtaken):
        folder.put("brands", [WIN], after=1)
    assert not list(tmp_path.glob(".unfinished*"))


def test_without_hard_links_versions_still_replace_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*paths: object) -> None:
        raise OSError("this file system has no hard links")

    monkeypatch.setattr("os.link", refuse)
    folder = LexiconFolder(tmp_path)
    folder.put("brands", [SQL])
    folder.put("brands", [WIN])
    assert entries(folder.get("brands@1")) == [SQL]
    assert entries(folder.get("brands@2")) == [WIN]


@pytest.mark.parametrize("content", [b"", b"{}\n[]", b"\xff\xfe", b'{"format": "other"}\n[]'])
def test_what_is_no_lexicon_is_unknown_and_named_in_the_log(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken@1.lexicon").write_bytes(content)
    (tmp_path / "notes.txt").write_text("hello")
    folder = LexiconFolder(tmp_path)
    assert refs(folder) == ["broken@1"]
    with caplog.at_level(logging.WARNING), pytest.raises(UnknownLexicon, match="cannot be read"):
        folder.header(folder.get("broken"))
    assert "lexicon.unreadable" in caplog.text
    with pytest.raises(CorruptLexiconError):
        list(read_entries(tmp_path / "broken@1.lexicon"))


def test_a_version_that_goes_while_it_is_looked_up_is_unknown_and_no_path_is_told(
    tmp_path: Path,
) -> None:
    folder = LexiconFolder(tmp_path)
    version = folder.put("brands", [SQL])
    LexiconFolder(tmp_path).delete("brands")
    for read in (folder.header, folder.entries):
        with pytest.raises(UnknownLexicon, match="No such file") as caught:
            read(version)
        assert str(tmp_path) not in str(caught.value)


def test_a_folder_that_goes_is_told_once_and_found_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, away = tmp_path / "lexicons", tmp_path / "away"
    folder = LexiconFolder(place)
    assert refs(folder) == [] and not caplog.records, "it need not exist"
    folder.put("brands", [SQL])
    place.rename(away)
    assert refs(folder) == refs(folder) == []
    assert [record.getMessage() for record in caplog.records].count("lexicons.unreadable") == 1
    away.rename(place)
    assert refs(folder) == ["brands@1"]


def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe@1.lexicon")
    folder = LexiconFolder(tmp_path)
    with pytest.raises(UnknownLexicon, match="not a file"):
        folder.header(folder.get("pipe"))


def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStore, match="--voices-dir"):
        LexiconFolder(tmp_path / "file" / "lexicons").put("brands", [SQL])


def test_there_are_so_many_lexicons_and_versions_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LEXICONS", 2)
    monkeypatch.setattr(module, "MAX_VERSIONS", 2)
    folder = LexiconFolder(tmp_path)
    for name in ("a", "b", "b"):
        folder.put(name, [SQL])
    with pytest.raises(TooManyLexicons, match="2 lexicons are stored"):
        folder.put("c", [SQL])
    with pytest.raises(TooManyLexicons, match="delete old ones, such as b@1"):
        folder.put("b", [SQL])
    folder.delete("b@1")
    assert folder.put("b", [SQL]).ref == "b@3"


def test_of_entries_for_the_same_word_the_first_counts() -> None:
    kept = checked([SQL, Entry("SQL", "other"), Entry("sql", "third"), Entry("SQL", "exact", True)])
    assert kept == [SQL, Entry("sql", "third"), Entry("SQL", "exact", True)]
    assert [entry.word for entry in checked([WIN, SQL, Entry("apt", "x")])] == [
        "apt",
        "Nguyễn",
        "SQL",
    ]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (Entry("", "x"), "the word of entry 1 must have 1 to 128 characters, found 0"),
        (Entry("x" * 129, "x"), "found 129"),
        (Entry("x", "y" * 129), "what entry 1 says must have 1 to 128 characters, found 129"),
        (Entry("x", " "), "printable"),
        (Entry("a\nb", "x"), "printable characters, found 'a\\\\nb'"),
        (Entry("a  b", "x"), "single spaces"),
        (Entry(" a", "x"), "single spaces"),
        (Entry("a\ud800", "x"), "printable"),
    ],
)
def test_an_entry_that_cannot_be_is_named(entry: Entry, says: str) -> None:
    with pytest.raises(LexiconError, match=says):
        checked([entry])


def test_a_lexicon_has_a_least_and_a_most_number_of_entries() -> None:
    with pytest.raises(LexiconError, match="at least one entry"):
        checked([])
    assert len(checked(Entry(f"w{n}", "x") for n in range(MAX_ENTRIES))) == MAX_ENTRIES
    with pytest.raises(LexiconTooLarge, match="at most 20000 entries"):
        checked(Entry(f"w{n}", "x") for n in range(MAX_ENTRIES + 1))
