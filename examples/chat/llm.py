"""Streams text from any OpenAI-compatible language model, with readable errors."""

import argparse
import os
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

SYSTEM = (
    "You are heard, not read: a voice says what you write. Answer in a few short sentences of "
    "plain text, without lists, headings, links or emoji. You may be interrupted; your earlier "
    "replies then end where the person stopped hearing them."
)


class LLMError(Exception):
    """The model gave no reply, or only part of one; the message can be shown to users."""


@dataclass
class Conversation:
    """The history that is sent to the model: what the person said, and what they heard."""

    messages: list[dict[str, str]] = field(default_factory=list)

    def user(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def reply(self) -> dict[str, str]:
        """Add an empty reply to the history and return it, to be filled as it is written."""
        message = {"role": "assistant", "content": ""}
        self.messages.append(message)
        return message

    def cut(self, message: dict[str, str], heard: str) -> None:
        """Shorten the reply `message` to what the person had heard when they interrupted it."""
        message["content"] = heard.rstrip()
        if not message["content"]:
            self.messages = [one for one in self.messages if one is not message]

    def to_send(self) -> list[dict[str, str]]:
        return [dict(message) for message in self.messages if message["content"]]


class Model:
    """A model behind an OpenAI-compatible API."""

    def __init__(self, url: str, name: str, key: str | None = None) -> None:
        self.url = url
        self.name = name
        # Local servers need no key, but the client insists on one.
        self._client = openai.AsyncOpenAI(base_url=url, api_key=key or "none", max_retries=1)

    async def deltas(self, messages: Sequence[dict[str, str]]) -> AsyncGenerator[str, None]:
        """Yield the reply as the model writes it. Raises LLMError.

        To stop the model, close the generator: that closes the response, and the model notices.
        """
        request: Any = [{"role": "system", "content": SYSTEM}, *messages]
        try:
            stream = await self._client.chat.completions.create(
                model=self.name, messages=request, stream=True
            )
            async with stream:
                async for chunk in stream:
                    if chunk.choices and chunk.choices[0].delta.content:
                        yield chunk.choices[0].delta.content
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            raise LLMError(self._in_words(error)) from error

    async def close(self) -> None:
        await self._client.close()

    def _in_words(self, error: Exception) -> str:
        match error:
            case openai.APITimeoutError():
                return f"The language model at {self.url} took too long to answer."
            case openai.APIConnectionError():
                return f"No language model answers at {self.url}."
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return "The language model refused the key. Give it in LLM_API_KEY."
            case openai.NotFoundError():
                return f"There is no model {self.name!r} at {self.url}."
            case openai.RateLimitError():
                return "The language model is busy, or the quota is used up. Try again later."
            case openai.APIStatusError():
                return f"The language model answered {error.status_code}: {error.message}"
            case openai.APIError():
                return f"The language model stopped: {error.message}"
            case _:
                return "The language model broke off in the middle of its reply."


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --llm-url and --llm-model. The key comes from the environment, not from a flag."""
    group = parser.add_argument_group("language model (its key: LLM_API_KEY or OPENAI_API_KEY)")
    group.add_argument("--llm-url", required=True, help="such as http://127.0.0.1:8002/v1")
    group.add_argument("--llm-model", required=True, metavar="NAME")


def model_of(arguments: argparse.Namespace) -> Model:
    key = os.environ.get("LLM_API_KEY") or os.environ.get("OPENAI_API_KEY")
    return Model(arguments.llm_url, arguments.llm_model, key)
