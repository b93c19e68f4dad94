"""The language model's end: deltas as they come, errors in words, and no model left talking."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from typing import Any

import pytest

from tests.waiting import until

pytestmark = pytest.mark.skipif(
    find_spec("openai") is None, reason="the chat example needs openai: pip install -e '.[chat]'"
)

HELLO = [{"role": "user", "content": "Hello"}]


async def deltas(url: str, name: str = "stand-in") -> list[str]:
    from llm import Model

    model = Model(url, name)
    try:
        return [delta async for delta in model.deltas(HELLO)]
    finally:
        await model.close()


async def test_a_reply_comes_in_the_model_s_own_pieces(stand_in: Any) -> None:
    stand_in.replies = ("There are two trains this evening.",)
    pieces = await deltas(stand_in.url)
    assert "".join(pieces) == stand_in.replies[0]
    assert len(pieces) > 5
    (asked,) = stand_in.requests
    assert (asked["model"], asked["stream"]) == ("stand-in", True)
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "refused the key"),
        (403, "refused the key"),
        (404, "no model 'stand-in'"),
        (429, "busy"),
        (400, "answered 400"),
    ],
)
async def test_a_refusal_is_explained(stand_in: Any, status: int, says: str) -> None:
    from llm import LLMError

    stand_in.status = status
    with pytest.raises(LLMError, match=says):
        await deltas(stand_in.url)


async def test_a_model_that_is_not_there_is_missed() -> None:
    from llm import LLMError

    with pytest.raises(LLMError, match="No language model answers at http://127.0.0.1:9/v1"):
        await deltas("http://127.0.0.1:9/v1")


async def test_a_model_that_breaks_off_is_explained_after_what_it_said(stand_in: Any) -> None:
    from llm import LLMError, Model

    stand_in.break_after = 3
    model, heard = Model(stand_in.url, "stand-in"), []
    with pytest.raises(LLMError, match="broke off|stopped|No language model"):
        async for delta in model.deltas(HELLO):
            heard.append(delta)
    assert len(heard) == 3
    await model.close()


async def test_closing_the_deltas_stops_the_model(stand_in: Any) -> None:
    from llm import Model

    stand_in.stall = 60.0
    model = Model(stand_in.url, "stand-in")
    async with contextlib.aclosing(model.deltas(HELLO)) as reply:
        async for _ in reply:
            break
    await until(lambda: stand_in.hung_up == 1)
    await model.close()


def test_the_history_ends_where_the_person_stopped_hearing() -> None:
    from llm import Conversation

    talk = Conversation()
    talk.user("When is the train?")
    reply = talk.reply()
    reply["content"] = "At ten past six. There is another at seven."
    talk.cut(reply, "At ten past six. ")
    unheard = talk.reply()
    unheard["content"] = "Hello?"
    talk.cut(unheard, "")
    assert talk.to_send() == [
        {"role": "user", "content": "When is the train?"},
        {"role": "assistant", "content": "At ten past six."},
    ]
