import asyncio
import gc
from dataclasses import replace
from typing import Any

import pytest

from realtime_tts import Backoff, RealtimeTTS
from realtime_tts.client.options import session_start
from realtime_tts.errors import (
    ClientError,
    ConfigError,
    ConnectionLost,
    HandshakeRefused,
    RequestError,
)
from realtime_tts.protocol.messages import (
    ErrorMessage,
    SessionStart,
    Text,
    WarningMessage,
)
from tests.client.conftest import StandIn
from tests.waiting import SECONDS

QUICK = Backoff(first=0.02, longest=0.1, give_up_after=5.0)


async def one_turn(peer: Any) -> None:
    """Speaks one packet for one turn, then goes away without a word."""
    await peer.ready()
    text = await peer.receive(Text)
    await peer.started(text.turn_id)
    await peer.audio(len(text.text))
    await peer.done(text.turn_id, samples=len(text.text))
    peer.socket.transport.abort()


async def patient(peer: Any) -> None:
    await peer.ready()
    await peer.until_closed()


async def spoken(tts: RealtimeTTS, text: str) -> list[int]:
    return [len(packet) // 2 async for packet in tts.speak(text)]


async def until_lost(tts: RealtimeTTS) -> None:
    assert tts._connection is not None
    await tts._connection._reader
    assert not tts.connected


async def test_ready_tells_what_the_server_can_do(stand_in: StandIn) -> None:
    tts = RealtimeTTS(await stand_in.start(patient))
    with pytest.raises(ClientError, match="not connected yet"):
        _ = tts.ready
    async with tts:
        assert tts.ready.voices == ("alto", "bass")
        assert tts.ready.limits.max_text_chars == 16_384


async def test_options_are_sent_once_per_socket(stand_in: StandIn) -> None:
    seen: list[SessionStart] = []

    async def script(peer: Any) -> None:
        await peer.ready()
        seen.append(await peer.receive(SessionStart))
        await peer.ready(voice="bass", seed=7)
        peer.socket.transport.abort()

    options: dict[str, Any] = {"voice": "bass", "seed": 7, "sampling": {"temperature": 0.0}}
    url = await stand_in.start(script, script)
    async with RealtimeTTS(url, backoff=QUICK, **options) as tts:
        assert tts.ready.settings.seed == 7
        await until_lost(tts)
        await tts.connect()
    start = session_start(options)
    assert seen == [start, start]


async def test_a_bad_option_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="seed"):
        RealtimeTTS(seed=-1)
    with pytest.raises(ConfigError, match="such as ws://"):
        RealtimeTTS("ftp://nowhere")
    with pytest.raises(ConfigError, match="seconds, above 0; found 0"):
        RealtimeTTS(connect_timeout=0)


async def test_configure_changes_later_turns_and_survives_a_new_connection(
    stand_in: StandIn,
) -> None:
    seen: list[SessionStart] = []

    async def first(peer: Any) -> None:
        await peer.ready()
        seen.append(await peer.receive(SessionStart))
        await peer.ready(voice="bass")
        peer.socket.transport.abort()

    async def second(peer: Any) -> None:
        await peer.ready()
        seen.append(await peer.receive(SessionStart))
        await peer.ready(voice="bass")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(first, second), backoff=QUICK) as tts:
        await tts.configure(voice="bass")
        assert tts.ready.settings.voice == "bass"
        await until_lost(tts)
        await tts.turn()
    assert seen == [SessionStart(voice="bass")] * 2


async def test_settings_the_server_refuses_change_nothing(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready(voice="alto")
        await peer.receive(SessionStart)
        await peer.send(
            ErrorMessage(code="bad_settings", message="no such voice", fatal=False, retryable=False)
        )
        await one_turn_after_ready(peer)

    async def one_turn_after_ready(peer: Any) -> None:
        text = await peer.receive(Text)
        await peer.done(text.turn_id)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        with pytest.raises(RequestError, match="no such voice"):
            await tts.configure(voice="nobody")
        assert tts.ready.settings.voice == "alto"
        assert await spoken(tts, "Hello.") == []
        assert tts._options == {}


async def test_settings_that_are_given_up_as_they_are_answered_are_given_up(
    stand_in: StandIn,
) -> None:
    """A cancellation that is lost there leaves a framework waiting for the task's end."""
    asked = asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(SessionStart)
        asked.set()
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        connection = tts._connection
        assert connection is not None
        configuring = asyncio.create_task(connection.configure(SessionStart(voice="bass")))
        await asked.wait()
        connection._dispatch(tts.ready)
        configuring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await configuring


async def test_settings_whose_caller_was_cancelled_do_not_answer_the_next_ones(
    stand_in: StandIn,
) -> None:
    asked = asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready()
        assert (await peer.receive(SessionStart)).speed == 1.2
        asked.set()
        await peer.ready(speed=1.2)
        assert (await peer.receive(SessionStart)).voice == "nobody"
        refused = ErrorMessage(code="bad_settings", message="…", fatal=False, retryable=False)
        await peer.send(refused)
        peer.socket.transport.abort()

    async def next_one(peer: Any) -> None:
        await peer.ready()
        assert await peer.receive(SessionStart) == SessionStart(speed=1.2)
        await peer.ready(speed=1.2)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script, next_one), backoff=QUICK) as tts:
        first = asyncio.create_task(tts.configure(speed=1.2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await asked.wait()
        with pytest.raises(RequestError, match="bad_settings"):
            await tts.configure(voice="nobody")
        await until_lost(tts)
        await tts.turn()
        assert tts.ready.settings.speed == 1.2


async def test_an_error_about_a_turn_that_was_dropped_is_no_answer_to_settings(
    stand_in: StandIn,
) -> None:
    async def script(peer: Any) -> None:
        await peer.ready(voice="alto")
        text = await peer.receive(Text)
        await peer.receive(SessionStart)
        await peer.send(
            ErrorMessage(
                code="overloaded",
                message="no capacity",
                fatal=False,
                retryable=True,
                turn_id=text.turn_id,
            )
        )
        await peer.ready(voice="bass")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Nobody listens.")
        del turn
        gc.collect()
        await tts.configure(voice="bass")
        assert tts.ready.settings.voice == "bass"


async def test_between_turns_a_lost_connection_is_replaced_unseen(stand_in: StandIn) -> None:
    url = await stand_in.start(one_turn, one_turn, one_turn)
    async with RealtimeTTS(url, backoff=QUICK) as tts:
        for text in ("One.", "Number two.", "Three"):
            assert await spoken(tts, text) == [len(text)]
            await until_lost(tts)
    assert stand_in.connections == 3


async def test_a_server_restarted_on_its_port_is_found_again(stand_in: StandIn) -> None:
    url = await stand_in.start(one_turn)
    async with RealtimeTTS(url, backoff=QUICK) as tts:
        assert await spoken(tts, "One.") == [4]
        await stand_in.stop()
        speaking = asyncio.create_task(spoken(tts, "Again"))
        await asyncio.sleep(0.1)
        assert not speaking.done()
        await stand_in.start(one_turn)
        assert await speaking == [5]


async def test_a_turn_cut_by_a_lost_connection_is_not_spoken_again(stand_in: StandIn) -> None:
    texts: list[Text] = []

    async def cut(peer: Any) -> None:
        await peer.ready()
        texts.append(await peer.receive(Text))
        await peer.started("turn-1")
        await peer.audio(1920)
        peer.socket.transport.abort()

    async def after(peer: Any) -> None:
        await peer.ready()
        text = await peer.receive(Text)
        texts.append(text)
        await peer.done(text.turn_id)
        texts.extend(await peer.until_closed())

    async with RealtimeTTS(await stand_in.start(cut, after), backoff=QUICK) as tts:
        with pytest.raises(ConnectionLost):
            await spoken(tts, "Cut.")
        assert await spoken(tts, "After.") == []
    assert [text.text for text in texts] == ["Cut.", "After."]


async def test_a_turn_opened_before_the_loss_goes_to_the_new_connection(stand_in: StandIn) -> None:
    url = await stand_in.start(one_turn, one_turn)
    async with RealtimeTTS(url, backoff=QUICK) as tts:
        early = await tts.turn()
        assert await spoken(tts, "One.") == [4]
        await until_lost(tts)
        await early.send("Early", end=True)
        assert [len(packet) // 2 async for packet in early] == [5]


async def test_a_server_that_leaves_gets_no_new_turns_and_finishes_its_own(
    stand_in: StandIn,
) -> None:
    finish = asyncio.Event()

    async def leaving(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.send(WarningMessage(code="going_away", message="the server stops"))
        await peer.started("turn-1")
        await peer.audio(100)
        await finish.wait()
        await peer.audio(200)
        await peer.done("turn-1", samples=300)
        await peer.socket.close(1001, "going_away")

    url = await stand_in.start(leaving, one_turn)
    async with RealtimeTTS(url, backoff=QUICK) as tts:
        old = await tts.turn()
        await old.send("Old.", end=True)
        assert len(await anext(old)) == 200
        assert await spoken(tts, "New.") == [4]
        finish.set()
        assert [len(packet) // 2 async for packet in old] == [200]


async def test_trying_again_ends_when_patience_does() -> None:
    tts = RealtimeTTS("127.0.0.1:9", backoff=Backoff(first=0.02, longest=0.05, give_up_after=0.3))
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(HandshakeRefused):
        await tts.turn()
    assert 0.1 < loop.time() - began < 20


async def test_a_wrong_key_is_not_tried_again(stand_in: StandIn) -> None:
    attempts = 0

    def refuse(connection: Any, request: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return connection.respond(401, "")

    url = await stand_in.start(patient, process_request=refuse)
    with pytest.raises(HandshakeRefused):
        await RealtimeTTS(url, backoff=QUICK).turn()
    assert attempts == 1
    stand_in.scripts.clear()


async def test_closing_ends_a_running_turn_and_stays_closed(stand_in: StandIn) -> None:
    tts = RealtimeTTS(await stand_in.start(patient))
    await tts.connect()
    turn = await tts.turn()
    await turn.send("Hello")
    await tts.close()
    await tts.close()
    with pytest.raises(ConnectionLost, match="closed by this client"):
        await anext(turn)
    with pytest.raises(ClientError, match="closed; make a new one"):
        await tts.turn()


async def test_closing_ends_the_wait_for_a_connection(stand_in: StandIn) -> None:
    """Of a turn that lost its socket, and of one that is begun meanwhile."""
    silent = asyncio.Event()

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    async def going(peer: Any) -> None:
        await peer.ready(resume="on")
        await peer.receive(Text)

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as nobody:
        tts = RealtimeTTS(await stand_in.start(going), connect_timeout=SECONDS)
        turn = await tts.turn()
        port = nobody.sockets[0].getsockname()[1]
        tts._target = replace(tts._target, url=f"ws://127.0.0.1:{port}")
        await turn.send("Hello")
        listening = asyncio.create_task(anext(turn))
        await until_lost(tts)
        beginning = asyncio.create_task(tts.turn())
        await asyncio.sleep(0.05)
        await tts.close()
        async with asyncio.timeout(SECONDS / 3):
            with pytest.raises(ConnectionLost):
                await listening
            with pytest.raises(ClientError, match="closed; make a new one"):
                await beginning
        silent.set()


async def test_turns_opened_at_once_share_one_new_connection(stand_in: StandIn) -> None:
    tts = RealtimeTTS(await stand_in.start(patient))
    turns = await asyncio.gather(*(tts.turn() for _ in range(5)))
    assert len({turn.turn_id for turn in turns}) == 5
    assert stand_in.connections == 1
    await tts.close()
