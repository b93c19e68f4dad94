"""ElevenLabs' and Cartesia's pronunciation dictionaries: made, read, changed, and spoken with."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.lexicons.pls import read_pls, write_pls
from realtime_tts.text.lexicon import Entry
from realtime_tts.voices.library import VoiceLibrary
from tests.dialects.cartesian import RAW, VOICE, cartesian
from tests.dialects.elevens import eleven
from tests.server.asking import client_of
from tests.server.commands import said_since
from tests.server.speaking import Speech, speaking

ELEVEN = "/v1/pronunciation-dictionaries"
CARTESIA = "/pronunciation-dicts"
RULE = {"type": "alias", "string_to_replace": "SQL", "alias": "sequel"}


class Server:
    def __init__(self, speech: Speech, http: httpx2.AsyncClient) -> None:
        self.speech, self.http, self.commands = speech, http, speech.spy_on_commands()

    def said(self) -> str:
        """The text that the engine was given since the last call."""
        return said_since(self.commands)

    async def rules(self, name: str, *rules: dict[str, Any]) -> httpx2.Response:
        body = {"name": name, "rules": list(rules)}
        return await self.http.post(f"{ELEVEN}/add-from-rules", json=body)

    async def items(self, name: str, *items: dict[str, Any]) -> httpx2.Response:
        return await self.http.post(f"{CARTESIA}/", json={"name": name, "items": list(items)})

    async def eleven_says(self, text: str, *locators: dict[str, Any]) -> httpx2.Response:
        body = {"text": text, "pronunciation_dictionary_locators": list(locators)}
        url = "/v1/text-to-speech/alto?output_format=pcm_24000"
        return await self.http.post(url, json=body)

    async def cartesia_says(self, text: str, id: str | None) -> httpx2.Response:
        body = {"transcript": text, "voice": VOICE, "output_format": RAW}
        return await self.http.post("/tts/bytes", json=body | {"pronunciation_dict_id": id})


Serve = Callable[..., AbstractAsyncContextManager[Server]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    @contextlib.asynccontextmanager
    async def server(**options: Any) -> AsyncIterator[Server]:
        options.setdefault("voices", VoiceLibrary(tmp_path))
        async with (
            speaking(**options) as running,
            client_of(running) as http,
        ):
            yield Server(running, http)

    return server


async def test_a_file_that_was_damaged_keeps_no_other_from_the_lists(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve() as server:
        await server.rules("Good", RULE)
        (tmp_path / "lexicons" / "bad@1.lexicon").write_bytes(b"?")
        listed = (await server.http.get(ELEVEN)).json()["pronunciation_dictionaries"]
        assert [each["id"] for each in listed] == ["good"]
        listed = (await server.http.get(f"{CARTESIA}/")).json()["data"]
        assert [each["id"] for each in listed] == ["good"]


# ElevenLabs ---------------------------------------------------------------------------------------


async def test_rules_become_a_dictionary_that_is_read_changed_and_downloaded(serve: Serve) -> None:
    async with serve() as server:
        made = (await server.rules("My Words!", RULE)).json()
        assert (made["id"], made["name"]) == ("my-words", "My Words!")
        assert (made["version_id"], made["version_rules_num"]) == ("1", 1)
        assert made["creation_time_unix"] > 1.7e9
        more = {
            "rules": [RULE | {"string_to_replace": "AI", "alias": "A I", "case_sensitive": False}]
        }
        added = (await server.http.post(f"{ELEVEN}/my-words/add-rules", json=more)).json()
        assert added == {"id": "my-words", "version_id": "2", "version_rules_num": 2}
        shown = (await server.http.get(f"{ELEVEN}/my-words")).json()
        assert [(r["string_to_replace"], r["case_sensitive"]) for r in shown["rules"]] == [
            ("AI", False),
            ("SQL", True),
        ]
        gone = {"rule_strings": ["SQL"]}
        removed = (await server.http.post(f"{ELEVEN}/my-words/remove-rules", json=gone)).json()
        assert (removed["version_id"], removed["version_rules_num"]) == ("3", 1)
        only = {"rules": [RULE]}
        assert (
            await server.http.post(f"{ELEVEN}/my-words/set-rules", json=only)
        ).status_code == 200
        file = await server.http.get(f"{ELEVEN}/my-words/2/download")
        assert [entry.word for entry in read_pls(file.content)] == ["AI", "SQL"]
        listed = (await server.http.get(ELEVEN)).json()
        assert [each["latest_version_id"] for each in listed["pronunciation_dictionaries"]] == ["4"]
        again = (await server.rules("My words", RULE)).json()
        assert again["id"].startswith("my-words-") and again["version_id"] == "1"


async def test_what_clients_add_at_the_same_time_is_all_kept(serve: Serve) -> None:
    """And what they make at the same time is a dictionary for each, even with the same name."""
    async with serve() as server:
        rules = [RULE | {"string_to_replace": f"word{number}"} for number in range(6)]
        made = await asyncio.gather(*(server.rules("Words", rule) for rule in rules))
        assert len({answer.json()["id"] for answer in made}) == 6
        assert {answer.json()["version_id"] for answer in made} == {"1"}
        await server.rules("Ours", RULE)
        url = f"{ELEVEN}/ours/add-rules"
        more = (server.http.post(url, json={"rules": [rule]}) for rule in rules)
        versions = {answer.json()["version_id"] for answer in await asyncio.gather(*more)}
        assert versions == set("234567")
        kept = (await server.http.get(f"{ELEVEN}/ours")).json()["rules"]
        assert len(kept) == 7


async def test_a_pls_file_becomes_a_dictionary(serve: Serve) -> None:
    async with serve() as server:
        made = await server.http.post(
            f"{ELEVEN}/add-from-file",
            data={"name": "From a file", "description": "ours"},
            files={"file": ("x.pls", write_pls([Entry("SQL", "sequel")]), "text/xml")},
        )
        assert made.json()["id"] == "from-a-file"
        spoken = await server.eleven_says("SQL sql", {"pronunciation_dictionary_id": "from-a-file"})
        assert spoken.status_code == 200 and server.said() == "sequel sql"
        for files, says in (({}, "`file`"), ({"file": ("x.pls", b"<a/>")}, "not a PLS file")):
            data = {"name": "x", "other": "y"}
            refused = await server.http.post(f"{ELEVEN}/add-from-file", data=data, files=files)
            assert refused.status_code == 400, refused.text
            assert says in refused.text or "multipart" in refused.text


async def test_locators_name_versions_in_requests_and_contexts(serve: Serve) -> None:
    async with serve() as server:
        await server.rules("words", RULE)
        other = {"rules": [RULE | {"alias": "ess cue ell"}]}
        await server.http.post(f"{ELEVEN}/words/set-rules", json=other)
        newest = {"pronunciation_dictionary_id": "words"}
        first = newest | {"version_id": "1"}
        await server.eleven_says("Use SQL.", newest | {"version_id": None})
        assert server.said() == "Use ess cue ell."
        await server.eleven_says("Use SQL.", first)
        assert server.said() == "Use sequel."
        async with eleven(server.speech, multi=False) as client:
            await client.send(text=" ", pronunciation_dictionary_locators=[first])
            await client.send(text="Use SQL. ")
            await client.send(text="")
            await client.until("isFinal")
            assert server.said() == "Use sequel. "
        async with eleven(server.speech) as client:
            for context_id, locators in (("a", [first]), ("b", [])):
                await client.send(
                    text="Use SQL.",
                    context_id=context_id,
                    flush=True,
                    pronunciation_dictionary_locators=locators,
                )
                await client.send(flush=True, context_id=context_id)
                await client.send(close_context=True, context_id=context_id)
                await client.until("isFinal", context_id)
            assert server.said() == "Use sequel.Use SQL."


async def test_what_elevenlabs_clients_get_that_cannot_be_had(serve: Serve) -> None:
    async with serve() as server:
        missing = {"pronunciation_dictionary_id": "none"}
        refused = await server.eleven_says("SQL", missing)
        assert refused.status_code == 404
        detail = refused.json()["detail"]
        assert detail["status"] == "pronunciation_dictionary_not_found"
        assert "`pronunciation_dictionary_locators`: no lexicon 'none'" in detail["message"]
        async with eleven(server.speech) as client:
            await client.send(
                text="SQL", context_id="a", pronunciation_dictionary_locators=[missing]
            )
            error = await client.next()
            assert (error["error"], error["isFinal"]) == (
                "pronunciation_dictionary_not_found",
                True,
            )
            await client.send(text="Hi.", context_id="b", flush=True)
            await client.until("audio", "b")
        phoneme = {"type": "phoneme", "string_to_replace": "a", "phoneme": "x", "alphabet": "ipa"}
        for rules, says in (
            ([phoneme], "cannot speak phonemes"),
            ([RULE | {"word_boundaries": False}], "whole words"),
            ([RULE | {"alias": 1}], "`alias` must be a string"),
            ([], "at least one entry"),
        ):
            answer = await server.rules("x", *rules)
            assert answer.status_code == 400 and says in answer.json()["detail"]["message"]
        answer = await server.http.get(f"{ELEVEN}/none")
        assert answer.status_code == 404
        answer = await server.http.post(f"{ELEVEN}/add-from-rules", content=b"[]")
        assert answer.status_code == 400


# Cartesia -----------------------------------------------------------------------------------------


async def test_items_become_a_dictionary_that_is_read_changed_and_deleted(serve: Serve) -> None:
    async with serve() as server:
        item = {"text": "SQL", "alias": "sequel"}
        made = (await server.items("Brands", item)).json()
        assert (made["id"], made["name"], made["pinned"]) == ("brands", "Brands", False)
        assert made["items"] == [item | {"case_sensitive": False}]
        assert (await server.http.get(f"{CARTESIA}/brands")).json() == made
        await server.items("Zoo", item)
        page = (await server.http.get(f"{CARTESIA}/?limit=1")).json()
        assert [each["id"] for each in page["data"]] == ["brands"] and page["has_more"]
        page = (await server.http.get(f"{CARTESIA}/?starting_after=brands")).json()
        assert [each["id"] for each in page["data"]] == ["zoo"] and not page["has_more"]
        await server.cartesia_says("sql SQL", "brands")
        assert server.said() == "sequel sequel"
        other = {"items": [item | {"alias": "squirrel", "case_sensitive": True}]}
        changed = (await server.http.patch(f"{CARTESIA}/brands", json=other)).json()
        assert changed["name"] == "Brands" and changed["items"][0]["alias"] == "squirrel"
        renamed = (await server.http.patch(f"{CARTESIA}/brands", json={"name": "New"})).json()
        assert renamed["name"] == "New" and renamed["items"] == changed["items"]
        async with cartesian(server.speech) as client:
            await client.say("sql SQL", pronunciation_dict_id="brands")
            await client.until("done")
        assert server.said() == "sql squirrel"
        assert (await server.http.delete(f"{CARTESIA}/brands@2")).status_code == 204
        left = (await server.http.get("/v1/lexicons/brands")).json()
        assert left["versions"] == [1, 3]  # only the one that was named is gone
        assert (await server.http.delete(f"{CARTESIA}/brands")).status_code == 204
        assert (await server.http.get(f"{CARTESIA}/brands")).status_code == 404


async def test_what_cartesias_clients_get_that_cannot_be_had(serve: Serve) -> None:
    async with serve() as server:
        refused = await server.cartesia_says("SQL", "pdict_none")
        assert refused.status_code == 404
        assert refused.json()["error_code"] == "pronunciation_dictionary_not_found"
        async with cartesian(server.speech) as client:
            await client.say("SQL", pronunciation_dict_id="none")
            error = await client.next()
            assert error["error_code"] == "pronunciation_dictionary_not_found"
            assert "`pronunciation_dict_id`: no lexicon 'none'" in error["message"]
        answer = await server.items("x", {"text": "cat", "alias": "<<k|æ|t>>"})
        assert answer.status_code == 400 and "cannot speak phonemes" in answer.json()["message"]
        answer = await server.http.post(f"{CARTESIA}/", json={"name": "x" * 257, "items": []})
        assert answer.status_code == 400 and "`name`" in answer.json()["message"]


# Both ---------------------------------------------------------------------------------------------


async def test_half_of_an_emoji_is_no_name(serve: Serve) -> None:
    item, name = {"text": "SQL", "alias": "sequel"}, {"name": "Words \ud83d"}
    async with serve() as server:
        for url, body in (
            (f"{ELEVEN}/add-from-rules", {"rules": [RULE]}),
            (f"{CARTESIA}/", {"items": [item]}),
        ):
            refused = await server.http.post(url, content=json.dumps(body | name))
            assert refused.status_code == 400 and "`name` must be" in refused.text


async def test_without_a_folder_or_a_key_there_are_no_dictionaries(serve: Serve) -> None:
    async with serve(voices=None) as server:
        assert "--voices-dir" in (await server.http.get(ELEVEN)).json()["detail"]["message"]
        assert "--voices-dir" in (await server.http.get(CARTESIA)).json()["message"]
        refused = await server.cartesia_says("SQL", "a")
        assert "--voices-dir" in refused.json()["message"]
        assert (await server.eleven_says("SQL")).status_code == 200
    async with serve(config=ServerConfig(port=0, api_keys=("a-secret-key",))) as server:
        assert (await server.http.get(ELEVEN)).json()["detail"]["status"] == "invalid_api_key"
        assert (await server.http.get(CARTESIA)).json()["error_code"] == "unauthorized"
        assert (await server.rules("x", RULE)).status_code == 401
        key = {"xi-api-key": "a-secret-key"}
        assert (await server.http.get(ELEVEN, headers=key)).status_code == 200


async def test_a_body_of_too_many_bytes_is_refused(serve: Serve) -> None:
    async with serve() as server:
        for path in (f"{ELEVEN}/add-from-rules", CARTESIA):
            answer = await server.http.post(path, content=bytes((4 << 20) + 1))
            assert answer.status_code == 413, answer.text
