"""A voice that is deleted while a turn speaks with it."""

from __future__ import annotations

from pathlib import Path

from tests.server.asking_voices import voice_server


async def test_a_turn_goes_on_after_a_pause_and_the_next_one_does_not(tmp_path: Path) -> None:
    async with voice_server(tmp_path) as voices:
        await voices.give("anna")
        async with voices.speech.talk() as talker:
            await talker.send("session.start", voice="anna")
            await talker.send("text", text="Before it. ")
            await talker.send("flush")
            await talker.until("turn.started")
            await voices.speech.settled_engine()
            assert (await voices.http.delete("/v1/voices/anna")).status_code == 204
            await talker.send("text", text="And after it.", end=True)
            done = (await talker.until("turn.done"))[-1]
            assert done["reason"] == "complete"
            await talker.send("text", text="Another turn.", end=True)
            assert (await talker.until("turn.done"))[-1]["reason"] == "error"


async def test_a_turn_that_cannot_be_resumed_says_what_was_sent_of_it(tmp_path: Path) -> None:
    async with voice_server(tmp_path) as voices:
        await voices.give("anna")
        async with voices.speech.talk() as talker:
            await talker.send("session.start", voice="anna")
            await talker.until("ready")
            assert (await voices.http.delete("/v1/voices/anna")).status_code == 204
            await talker.send("turn.resume", turn_id="reply-1", samples=4_800, text_chars=6)
            await talker.send("text", turn_id="reply-1", text="Before it, and after.", end=True)
            done = (await talker.until("turn.done"))[-1]
            assert (done["reason"], done["samples"]) == ("error", 4_800)
