"""What a Pipecat TTS service puts into the framework's audio contexts: sound, words, ends."""

from __future__ import annotations

import re
import unicodedata

from pipecat.frames.frames import TTSAudioRawFrame, TTSStoppedFrame

from realtime_tts.adapters.pipecat_connection import ConnectedService
from realtime_tts.client import Word

_PAUSE = re.compile(r"<break\s[^>]*>")
"""Pipecat matches words with its text, and takes markup for what nobody reports."""

_UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


class ContextService(ConnectedService):
    """A connected service that speaks into audio contexts."""

    async def _append(self, context_id: str, audio: bytes) -> None:
        if audio:
            frame = TTSAudioRawFrame(audio, self.sample_rate, 1, context_id=context_id)
            await self.append_to_audio_context(context_id, frame)

    async def _append_words(self, context_id: str, words: list[Word]) -> None:
        """Pipecat passes each on when it is heard; it puts spaces between them, or does not."""
        for word in words:
            text = _PAUSE.sub("", word.text).strip()
            if text:
                await self.add_word_timestamps(
                    [(text, word.start_ms / 1000)],
                    context_id,
                    includes_inter_frame_spaces=is_unspaced(text),
                )

    async def _close_context(self, context_id: str) -> None:
        await self.append_to_audio_context(context_id, TTSStoppedFrame(context_id=context_id))
        await self.remove_audio_context(context_id)


def is_unspaced(text: str) -> bool:
    """Whether the script of the text puts no spaces between words."""
    letters = (unicodedata.name(char, "") for char in text if char.isalnum())
    return next(letters, "").startswith(_UNSPACED)
