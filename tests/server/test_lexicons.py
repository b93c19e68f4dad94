"""`/v1/lexicons` over real HTTP, and the lexicons that sessions name: every route and refusal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.lexicons import library
from realtime_tts.lexicons.errors import NoLexicons
from realtime_tts.lexicons.file import read_entries
from realtime_tts.lexicons.pls import NAMESPACE
from realtime_tts.lexicons.request import MAX_BODY_BYTES
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.front import Front
from realtime_tts.text.lexicon import Entry, WordList
from realtime_tts.voices.library import VoiceLibrary
from tests.server.asking import client_of, refusal
from tests.server.commands import said_since
from tests.server.speaking import Speech, speaking
from tests.server.talking import Talker, of_type
from tests.waiting import SECONDS

SQL = {"SQL": "sequel", "New York": "Nu Yoak"}
PLS = (
    f'<lexicon version="1.0" xmlns="{NAMESPACE}" alphabet="ipa" xml:lang="en">'
    "<lexeme><grapheme>SQL</grapheme><alias>sequel</alias></lexeme></lexicon>"
)


class Lexicons:
    """A client of one server's `/v1/lexicons`, and the server."""

    def __init__(self, speech: Speech, http: httpx2.AsyncClient) -> None:
        self.speech, self.http = speech, http
        self.commands = speech.spy_on_commands()

    async def put(self, name: str, entries: Any, **more: Any) -> httpx2.Response:
        return await self.http.put(f"/v1/lexicons/{name}", json={"entries": entries, **more})

    async def stored(self, name: str, entries: Any) -> dict[str, Any]:
        answer = await self.put(name, entries)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def said(self) -> str:
        """The text that the engine was given since the last call."""
        return said_since(self.commands)

    async def speak(self, talker: Talker, *deltas: str, turn_id: str | None = None) -> str:
        turn_id = turn_id or secrets.token_hex(4)
        for delta in deltas:
            await talker.send("text", turn_id=turn_id, text=delta)
        await talker.send("turn.end", turn_id=turn_id)
        await talker.until("turn.done")
        return self.said()


Serve = Callable[..., AbstractAsyncContextManager[Lexicons]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    @contextlib.asynccontextmanager
    async def server(
        headers: dict[str, str] | None = None, **options: Any
    ) -> AsyncIterator[Lexicons]:
        options.setdefault("voices", VoiceLibrary(tmp_path / "voices"))
        async with speaking(**options) as running, client_of(running, headers) as http:
            yield Lexicons(running, http)

    return server


# Routes -------------------------------------------------------------------------------------------


async def test_a_lexicon_is_stored_shown_listed_replaced_and_deleted(serve: Serve) -> None:
    async with serve() as lexicons:
        made = await lexicons.put("brands", SQL, title="Our brands")
        assert made.status_code == 201 and made.headers["location"] == "/v1/lexicons/brands@1"
        first = made.json()
        assert first.pop("created").endswith("Z")
        assert first == {
            "id": "brands",
            "version": 1,
            "ref": "brands@1",
            "title": "Our brands",
            "count": 2,
            "versions": [1],
        }
        entries = [{"word": "Nguyen", "say": "win", "case_sensitive": True}]
        second = await lexicons.stored("brands", entries)
        assert (second["ref"], second["versions"]) == ("brands@2", [1, 2])
        newest = (await lexicons.http.get("/v1/lexicons/brands")).json()
        assert newest == second | {"entries": entries}
        old = (await lexicons.http.get("/v1/lexicons/brands@1")).json()
        assert old["entries"] == [{"word": word, "say": SQL[word]} for word in ("New York", "SQL")]
        await lexicons.stored("a", SQL)
        listed = (await lexicons.http.get("/v1/lexicons")).json()["lexicons"]
        assert [each["ref"] for each in listed] == ["a@1", "brands@2"] and listed[1] == second
        assert (await lexicons.http.delete("/v1/lexicons/brands@1")).status_code == 204
        assert (await lexicons.http.get("/v1/lexicons/brands")).json()["versions"] == [2]
        assert (await lexicons.http.delete("/v1/lexicons/brands")).status_code == 204
        refusal(await lexicons.http.get("/v1/lexicons/brands"), 404, "unknown_lexicon")
        refusal(await lexicons.http.delete("/v1/lexicons/brands"), 404, "unknown_lexicon")


@pytest.mark.parametrize("kind", ["application/pls+xml", "text/xml; charset=utf-8"])
async def test_a_pls_file_goes_in_and_comes_out(serve: Serve, kind: str) -> None:
    async with serve() as lexicons:
        made = await lexicons.http.put(
            "/v1/lexicons/brands", content=PLS.encode(), headers={"content-type": kind}
        )
        assert made.status_code == 201, made.text
        shown = (await lexicons.http.get("/v1/lexicons/brands")).json()
        assert shown["entries"] == [{"word": "SQL", "say": "sequel"}]
        file = await lexicons.http.get("/v1/lexicons/brands?format=pls")
        assert file.headers["content-type"] == "application/pls+xml"
        again = await lexicons.http.put(
            "/v1/lexicons/again", content=file.content, headers={"content-type": kind}
        )
        assert again.status_code == 201
        message = refusal(
            await lexicons.http.get("/v1/lexicons/brands?format=csv"), 400, "bad_request"
        )
        assert "json or pls" in message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "expected JSON with `entries`"),
        (b"[]", "expected JSON with `entries`"),
        (b"\xff", "expected JSON with `entries`"),
        (b'{"entries": {}}', "at least one entry"),
        (b'{"entries": {"a": 1}}', "expected JSON"),
        (b'{"entries": {"a": "b"}, "titel": "x"}', "titel"),
        (b'{"entries": [{"word": "a"}]}', "`say`, what to say for it, is missing"),
        (b'{"entries": [{"word": "a", "ipa": "x"}]}', "cannot speak phonemes: give an alias"),
        (
            b'{"entries": [{"word": "a", "say": "b", "x": %b' % (b"[" * 50_000),
            "the JSON is nested too deeply",
        ),
        (b'{"entries": {"a": ""}}', "what entry 1 says must have 1 to 128 characters"),
    ],
)
async def test_a_body_that_is_no_lexicon_is_refused_with_the_reason(
    serve: Serve, body: bytes, says: str
) -> None:
    async with serve() as lexicons:
        json_type = {"content-type": "application/json"}
        answer = await lexicons.http.put("/v1/lexicons/a", content=body, headers=json_type)
        assert says in refusal(answer, 400, "bad_request")
        assert (await lexicons.http.get("/v1/lexicons")).json() == {"lexicons": []}


async def test_names_kinds_and_sizes_that_cannot_be_are_refused(serve: Serve) -> None:
    async with serve() as lexicons:
        assert "a-z" in refusal(await lexicons.put("Brands", SQL), 400, "bad_request")
        assert "a-z" in refusal(await lexicons.put("brands@1", SQL), 400, "bad_request")
        answer = await lexicons.http.put("/v1/lexicons/a", content=b"SQL,sequel")
        assert "application/pls+xml" in refusal(answer, 415, "unsupported_media")
        large = b" " * (MAX_BODY_BYTES + 1)
        answer = await lexicons.http.put("/v1/lexicons/a", content=large)
        refusal(answer, 413, "too_large")

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(5):
                yield b" " * (1 << 20)

        with contextlib.suppress(httpx2.TransportError):  # it may be cut while it is sent
            refusal(await lexicons.http.put("/v1/lexicons/a", content=pieces()), 413, "too_large")
        many = {f"w{number}": "x" for number in range(20_001)}
        refusal(await lexicons.put("a", many), 413, "too_large")


async def test_a_server_without_a_folder_says_how_it_gets_one(serve: Serve) -> None:
    async with serve(voices=None) as lexicons:
        for answer in (await lexicons.put("a", SQL), await lexicons.http.get("/v1/lexicons")):
            assert "--voices-dir" in refusal(answer, 409, "no_lexicons")
        async with lexicons.speech.talk() as talker:
            await talker.send("session.start", lexicons=["a"])
            [error] = await talker.until("error")
            assert error["code"] == "bad_settings" and "--voices-dir" in error["message"]


def test_where_voices_are_in_object_storage_no_lexicon_is_kept_in_this_machines_copies() -> None:
    engine: Any = SimpleNamespace(stages=SimpleNamespace(marks=False))
    front = Front(ServerConfig(), engine, Metrics(), VoiceLibrary("s3://bucket/voices"))
    assert front.lexicons is None and not hasattr(engine, "lexicons")
    with pytest.raises(NoLexicons, match="--voices-dir FOLDER"):
        front.pinned(SessionSettings(lexicons=["a"]))
    assert front.pinned(SessionSettings()) == SessionSettings()


async def test_who_has_no_key_writes_and_reads_nothing_and_a_token_only_reads(serve: Serve) -> None:
    config = ServerConfig(port=0, api_keys=("a-secret-key",))
    async with serve(config=config) as lexicons:
        key = {"authorization": "Bearer a-secret-key"}
        assert (await lexicons.put("a", SQL)).status_code == 401
        assert (await lexicons.http.get("/v1/lexicons")).status_code == 401
        token = (await lexicons.http.post("/v1/token", headers=key)).json()["token"]
        bearer = {"authorization": f"Bearer {token}"}
        assert (await lexicons.http.get("/v1/lexicons", headers=bearer)).status_code == 200
        body = {"entries": SQL}
        for headers, status in ((bearer, 401), (key, 201)):
            stored = await lexicons.http.put("/v1/lexicons/a", json=body, headers=headers)
            assert stored.status_code == status
        assert (await lexicons.http.delete("/v1/lexicons/a", headers=bearer)).status_code == 401


async def test_a_file_that_was_damaged_keeps_no_other_from_the_list(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve() as lexicons:
        await lexicons.stored("good", SQL)
        (tmp_path / "voices" / "lexicons" / "bad@1.lexicon").write_bytes(b"?")
        listed = (await lexicons.http.get("/v1/lexicons")).json()["lexicons"]
        assert [each["id"] for each in listed] == ["good"]
        refusal(await lexicons.http.get("/v1/lexicons/bad"), 404, "unknown_lexicon")


# Sessions -----------------------------------------------------------------------------------------


async def test_a_session_speaks_with_the_lexicons_that_it_names(serve: Serve) -> None:
    async with serve() as lexicons:
        await lexicons.stored("places", SQL)
        await lexicons.stored("people", {"Nguyen": "win", "York": "never"})
        query = "?text_normalization=off&lexicons=places,people"
        async with lexicons.speech.talk(query) as talker:
            deltas = ("Ask Ngu", "yen in Ne", "w Yor", "k of S", "QL.")
            assert await lexicons.speak(talker, *deltas) == "Ask win in Nu Yoak of sequel."


async def test_the_inline_lexicon_comes_before_those_that_are_named(serve: Serve) -> None:
    async with serve() as lexicons:
        await lexicons.stored("one", {"SQL": "first", "cat": "one cat"})
        await lexicons.stored("two", {"SQL": "second", "cat": "two cat", "dog": "two dog"})
        async with lexicons.speech.talk("?lexicons=one,two") as talker:
            await talker.send("session.start", lexicon={"SQL": "sequel"})
            await talker.until("ready")
            assert await lexicons.speak(talker, "SQL cat dog") == "sequel one cat two dog"
            await talker.send("session.start", lexicons=["two", "one"])
            await talker.until("ready")
            assert await lexicons.speak(talker, "SQL cat dog") == "sequel two cat two dog"
            await talker.send("session.start", lexicons=None)
            [ready] = await talker.until("ready")
            assert ready["settings"]["lexicons"] == []
            assert await lexicons.speak(talker, "SQL cat dog") == "sequel cat dog"


async def test_a_turn_takes_the_newest_version_unless_one_is_named(serve: Serve) -> None:
    async with serve() as lexicons:
        await lexicons.stored("a", {"SQL": "old"})
        async with (
            lexicons.speech.talk("?lexicons=a") as newest,
            lexicons.speech.talk("?lexicons=a@1") as pinned,
        ):
            assert await lexicons.speak(newest, "SQL") == "old"
            await lexicons.stored("a", {"SQL": "new"})
            assert await lexicons.speak(newest, "SQL") == "new"
            assert await lexicons.speak(pinned, "SQL") == "old"


async def test_a_lexicon_that_is_not_there_is_an_error_of_the_settings(serve: Serve) -> None:
    async with serve() as lexicons:
        await lexicons.stored("a", SQL)
        async with lexicons.speech.talk() as talker:
            for names, says in (
                (["b"], "no lexicon 'b'"),
                (["a@2"], "no version '2'; it has 1"),
                (["../a"], "no lexicon"),
                ([f"x{n}" for n in range(9)], "at most 8, found 9"),
            ):
                await talker.send("session.start", lexicons=names)
                [error] = await talker.until("error")
                assert error["code"] == "bad_settings" and says in error["message"]
            assert await lexicons.speak(talker, "SQL") == "SQL"


async def test_a_lexicon_that_is_deleted_is_missed_by_the_next_turn(
    serve: Serve,
) -> None:
    async with serve() as lexicons:
        await lexicons.stored("a", SQL)
        async with lexicons.speech.talk("?lexicons=a") as talker:
            assert await lexicons.speak(talker, "SQL") == "sequel"
            await lexicons.http.delete("/v1/lexicons/a")
            await talker.send("text", turn_id="u", text="SQL ", end=True)
            *_, error, done = await talker.until("turn.done")
            assert (error["code"], error["turn_id"], error["fatal"]) == (
                "unknown_lexicon",
                "u",
                False,
            )
            assert done["reason"] == "error"
            await talker.send("session.start", lexicons=[])
            await talker.until("ready")
            assert await lexicons.speak(talker, "SQL") == "SQL"


def held_back(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """From now on no lexicon is read until this is set."""
    going, read = threading.Event(), library._words_of

    def slowly(version: Any) -> WordList:
        assert going.wait(SECONDS)
        return read(version)

    monkeypatch.setattr(library, "_words_of", slowly)
    return going


async def test_text_waits_in_its_order_until_its_lexicon_has_been_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it takes as long as it likes: others speak meanwhile."""
    going = held_back(monkeypatch)
    async with serve() as lexicons:
        await lexicons.stored("a", SQL)
        async with (
            lexicons.speech.talk("?lexicons=a") as waiting,
            lexicons.speech.talk() as other,
        ):
            await waiting.send("text", turn_id="t", text="SQL in Ne")
            await waiting.send("text", turn_id="t", text="w York ")
            await waiting.send("flush", turn_id="t")
            await waiting.send("text", turn_id="t", text="SQL.", end=True)
            assert await lexicons.speak(other, "SQL") == "SQL"
            going.set()
            await waiting.until("turn.done")
            # The flush parts the text where it came: white space before a part is not spoken.
            assert lexicons.said() == "sequel in Nu Yoak" + "sequel."
        await lexicons.speech.settled()


async def test_an_interrupt_of_text_that_waits_for_its_lexicon_says_that_nothing_was_heard(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = held_back(monkeypatch)
    async with serve() as lexicons:
        await lexicons.stored("a", SQL)
        async with lexicons.speech.talk("?lexicons=a") as talker:
            await talker.send("text", turn_id="t", text="SQL is said.")
            await talker.send("interrupt", turn_id="t")
            *_, told, done = await talker.until("turn.done")
            assert (told["text_spoken"], told["text_remaining"]) == ("", "SQL is said.")
            assert done["reason"] == "interrupted"
            going.set()
            assert await lexicons.speak(talker, "SQL") == "sequel"
        await lexicons.speech.settled()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (OSError("too many open files"), "too many open files"),
        (ZeroDivisionError("nobody has foreseen it"), "a fault of the server, whose log says more"),
    ],
    ids=["unreadable", "bug"],
)
async def test_a_lexicon_that_cannot_be_read_fails_the_turn_and_is_tried_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, fault: Exception, why: str
) -> None:
    fails, read = [True], read_entries

    def unreadable(path: Path) -> Iterator[list[Entry]]:
        if fails:
            raise fault
        return read(path)

    monkeypatch.setattr(library, "read_entries", unreadable)
    async with serve() as lexicons:
        await lexicons.stored("a", SQL)
        async with lexicons.speech.talk("?lexicons=a") as talker:
            await talker.send("text", turn_id="t", text="SQL", end=True)
            *_, error, done = await talker.until("turn.done")
            assert error["code"] == "unknown_lexicon" and why in error["message"]
            assert done["reason"] == "error"
            fails.clear()
            assert await lexicons.speak(talker, "SQL") == "sequel"


async def test_word_times_and_reports_quote_the_clients_own_text(serve: Serve) -> None:
    async with serve() as lexicons:
        await lexicons.stored("a", SQL)
        text = "New York has SQL."
        async with lexicons.speech.talk("?lexicons=a&word_times=on") as talker:
            await talker.send("text", turn_id="t", text=text, end=True)
            messages = await talker.until("turn.done")
            told = of_type(messages, "turn.words")
            words = [word for message in told for word in message["words"]]
            assert "".join(word["text"] for word in words).strip() == text
            assert lexicons.said() == "Nu Yoak has sequel."
            await talker.send("interrupt", turn_id="t", played_ms=10**6)
            [report] = await talker.until("turn.interrupted")
            assert report["text_spoken"] == text


async def test_servers_on_one_folder_see_what_each_other_stores(tmp_path: Path) -> None:
    voices = tmp_path / "voices"
    async with (
        speaking(voices=VoiceLibrary(voices)) as one,
        speaking(voices=VoiceLibrary(voices)) as two,
        client_of(one) as http,
    ):
        there = Lexicons(two, http)
        await Lexicons(one, http).stored("a", {"SQL": "one"})
        async with two.talk("?lexicons=a") as talker:
            assert await there.speak(talker, "SQL") == "one"
            await there.stored("a", {"SQL": "two"})
            assert await there.speak(talker, "SQL") == "two"


async def test_sessions_share_a_lexicon_in_memory(serve: Serve) -> None:
    async with serve() as lexicons:
        await lexicons.stored("a", SQL)
        stored = lexicons.speech.running.front.lexicons
        assert stored is not None
        async with (
            lexicons.speech.talk("?lexicons=a") as one,
            lexicons.speech.talk("?lexicons=a@1") as two,
        ):
            await asyncio.gather(
                *(talker.send("text", text="x", end=True) for talker in (one, two))
            )
            await asyncio.gather(*(talker.until("turn.done") for talker in (one, two)))
            [first], [second] = stored.stored(["a@1"]), stored.stored(["a@1"])
            assert first is second and first.entries == 2
        assert json.dumps(sorted(stored._kept)) == '["a@1"]'
