"""A stand-in for a language model: the OpenAI API with fixed replies and a stall now and then.

    python examples/chat/stand_in.py [--port 8002] [--pace 30] [--stall 1.5]

It serves to try the chat without a model, and to test it.
"""

import argparse
import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

REPLIES = (
    "That is a good question. I am only a stand-in, so I do not think; I say what I was given to "
    "say, a few letters at a time, and now and then I stop as if I had to look something up.",
    "Let me see. There are two trains this evening: one at ten past six that goes straight "
    "through, and one at seven where you change once. The first is a little dearer.",
    "You can interrupt me whenever you like. Type, or speak, and I am silent at once; and what you "
    "did not hear, I never said.",
)


@dataclass
class StandIn:
    """Settings of the stand-in, and a record of its requests for tests.

    `pace`: tokens a second. `stall`: seconds of a pause after each `stall_every` tokens.
    """

    pace: float = 30.0
    stall: float = 1.5
    stall_every: int = 12
    replies: tuple[str, ...] = REPLIES
    status: int = 200
    break_after: int | None = None  # tokens after which the connection breaks
    requests: list[dict[str, Any]] = field(default_factory=list)
    hung_up: int = 0  # replies whose reader hung up before their end

    def app(self) -> Starlette:
        complete = Route("/v1/chat/completions", self._complete, methods=["POST"])
        return Starlette(routes=[complete, Route("/v1/models", self._models)])

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

    async def _complete(self, request: Request) -> Response:
        asked = await request.json()
        self.requests.append(asked)
        if self.status != 200:
            error = {"message": "the stand-in was told to refuse", "type": "stand_in"}
            return JSONResponse({"error": error}, status_code=self.status)
        turns = sum(message["role"] == "user" for message in asked["messages"])
        reply = self.replies[(turns - 1) % len(self.replies)]
        if not asked.get("stream"):
            message = {"role": "assistant", "content": reply}
            return JSONResponse({"object": "chat.completion", "choices": [{"message": message}]})
        return StreamingResponse(self._stream(reply), media_type="text/event-stream")

    async def _stream(self, reply: str) -> AsyncIterator[str]:
        finished = False
        try:
            yield _event({"role": "assistant", "content": ""})
            for number, token in enumerate(re.findall(r"\s*\w{1,4}|\s*[^\w\s]", reply), 1):
                if self.break_after is not None and number > self.break_after:
                    finished = True
                    raise ConnectionError("told to break off")
                yield _event({"content": token})
                await asyncio.sleep(1 / self.pace)
                if number % self.stall_every == 0:
                    await asyncio.sleep(self.stall)
            yield _event({}, finish="stop")
            yield "data: [DONE]\n\n"
            finished = True
        finally:
            self.hung_up += not finished


def _event(delta: dict[str, str], finish: str | None = None) -> str:
    chunk = {
        "id": "stand-in",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "stand-in",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return f"data: {json.dumps(chunk)}\n\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A stand-in for a language model.")
    parser.add_argument("--port", type=int, default=8002)
    parser.add_argument("--pace", type=float, default=30.0, help="tokens a second")
    parser.add_argument("--stall", type=float, default=1.5, help="seconds, every twelve tokens")
    arguments = parser.parse_args()
    print(f"--llm-url http://127.0.0.1:{arguments.port}/v1 --llm-model stand-in", flush=True)
    stand_in = StandIn(pace=arguments.pace, stall=arguments.stall)
    uvicorn.run(stand_in.app(), host="127.0.0.1", port=arguments.port, log_level="warning")
