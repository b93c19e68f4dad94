"""Speak a language model's deltas while the model is still writing.

    python examples/llm_to_speech.py --llm-url http://127.0.0.1:8002/v1 --llm-model any "Good day!"

Any OpenAI-compatible model will do; examples/chat/stand_in.py is a stand-in for one. With
--interrupt-after, the listener interrupts the reply, and the program learns which part of it they
had heard. examples/chat/terminal.py is a conversation whose history holds only what was heard.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator

from openai import AsyncOpenAI, OpenAIError

from realtime_tts import RealtimeTTS, RealtimeTTSError, Speech, wav_writer


async def reply(url: str, model: str, question: str) -> AsyncIterator[str]:
    """Yield the model's answer, a few characters at a time."""
    llm = AsyncOpenAI(base_url=url, api_key=os.environ.get("LLM_API_KEY", "none"))
    stream = await llm.chat.completions.create(
        model=model, messages=[{"role": "user", "content": question}], stream=True
    )
    async with stream:
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                yield chunk.choices[0].delta.content


async def main(arguments: argparse.Namespace) -> None:
    async with RealtimeTTS(arguments.server) as tts:
        deltas = reply(arguments.llm_url, arguments.llm_model, arguments.question)
        speech, barge = tts.speak(deltas), None
        with wav_writer(arguments.output) as wav:
            async for packet in speech:
                wav.writeframes(packet)
                if arguments.interrupt_after is not None and barge is None:
                    barge = asyncio.create_task(barge_in(speech, arguments.interrupt_after))
        if barge is not None:
            await barge


async def barge_in(speech: Speech, after: float) -> None:
    """Interrupt when the listener has heard `after` seconds."""
    await asyncio.sleep(after)
    report = await speech.interrupt(played_ms=after * 1000)
    print(f"heard:     {report.text_spoken!r}")
    print(f"not heard: {report.text_remaining!r}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A language model's deltas in, speech out.")
    parser.add_argument("question")
    parser.add_argument("--server", default="ws://127.0.0.1:8000")
    parser.add_argument("--llm-url", required=True)
    parser.add_argument("--llm-model", required=True)
    parser.add_argument("--output", default="reply.wav")
    parser.add_argument("--interrupt-after", type=float, metavar="SECONDS")
    try:
        asyncio.run(main(parser.parse_args()))
    except RealtimeTTSError as error:  # such as no server
        sys.exit(str(error))
    except OpenAIError as error:
        sys.exit(f"no reply of the language model: {error}")
