"""TokenSequencer: matches a Pipecat service's words with its text before a sentence is complete."""

from __future__ import annotations

from copy import copy
from typing import Any

from pipecat.frames.frames import AggregatedTextFrame, Frame
from pipecat.utils.context.aggregated_frame_sequencer import AggregatedFrameSequencer


class TokenSequencer(AggregatedFrameSequencer):
    """Pipecat's sequencer of text that arrives by the token, with every word when it is due.

    Pipecat's own keeps words until it knows the end of their sentence, which takes the beginning of
    the next one. An interruption before that would lose all words of the sentence although they
    were heard, and words that were kept come out behind later ones. This one takes what there is of
    the sentence, in whole words, when its next word is due.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, streaming=True)
        self._held: dict[str, tuple[AggregatedTextFrame, dict[str, Any]]] = {}
        """By context: the text behind its last white space, which may be part of a word."""

    async def register_spoken(
        self, frame: AggregatedTextFrame, context_id: str, tts_text: str, **options: Any
    ) -> list[Frame]:
        """Note text, except for a word that may not be complete."""
        if not frame.text == (frame.raw_text or frame.text) == tts_text:
            # Changed by a transform: only the whole token can be told apart.
            frames = await self._release(context_id)
            return frames + await super().register_spoken(frame, context_id, tts_text, **options)
        if context_id in self._held:
            tts_text = self._held.pop(context_id)[0].text + tts_text
        word = tts_text.rsplit(maxsplit=1)[-1] if tts_text[-1:].strip() else ""
        text = tts_text[: len(tts_text) - len(word)]
        if word:
            self._held[context_id] = (_with_text(frame, word), options)
        if not text:
            return []
        return await super().register_spoken(_with_text(frame, text), context_id, text, **options)

    async def finalize(self, context_id: str | None) -> list[Frame]:
        """Take all text of the context as complete."""
        frames = await self._release(context_id)
        return frames + await super().finalize(context_id)

    async def promote_for(self, word: str, context_id: str | None) -> list[Frame]:
        """Take text as complete if `word` is in none that is. Return frames to push before it."""
        frames: list[Frame] = []
        if not self._takes(word, context_id):
            frames += await super().finalize(context_id)
        if not self._takes(word, context_id):  # the server knows that the last word is complete
            frames += await self.finalize(context_id)
        return frames

    def force_complete(self, context_id: str, last_word_pts: int) -> list[Frame]:
        """Forget the context, whose sound is over, and return what is still to be pushed."""
        self._held.pop(context_id, None)
        return super().force_complete(context_id, last_word_pts)

    def clear(self, **options: Any) -> None:
        """Forget all contexts but those that an interruption leaves."""
        super().clear(**options)
        keep = options.get("keep_contexts") or ()  # pipecat-ai 1.12 keeps none
        self._held = {name: held for name, held in self._held.items() if name in keep}

    async def _release(self, context_id: str | None) -> list[Frame]:
        held = self._held.pop(context_id, None) if context_id is not None else None
        if held is None or context_id is None:
            return []
        frame, options = held
        return await super().register_spoken(frame, context_id, frame.text, **options)

    def _takes(self, word: str, context_id: str | None) -> bool:
        active = self._get_active_slot(context_id)
        following = self._get_next_active_slot(active, context_id) if active else None
        trackers = [slot.tracker for slot in (active, following) if slot is not None]
        return any(each is not None and each.word_belongs_here(word) for each in trackers)


def _with_text(frame: AggregatedTextFrame, text: str) -> AggregatedTextFrame:
    frame = copy(frame)
    frame.text, frame.raw_text = text, None
    return frame
