"""The talker's prompt: two channels, text and codec, whose embeddings are added per position.

    instructions | <|im_start|> assistant \\n | pad  pad       pad      pad       pad     | bos
        -        |             -             | think think_bos language think_eos speaker | pad

then, in the streaming layout, the first text token over codec bos, with the others following one
per frame; or, in the full-text layout, every text token and end-of-text over codec pad, then text
pad over codec bos. A reference recording's codes and transcript (in-context cloning) come between
prefix and text.

Token ids of text come from outside; so does the tokenizer, as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from realtime_tts.errors import CheckpointError, RequestError
from realtime_tts.kernels.kept_frames import CodeTables
from realtime_tts.languages import AUTO, known_as
from realtime_tts.model.config import ModelConfig, Variant
from realtime_tts.model.reference import Reference
from realtime_tts.model.talker import Talker

STREAMING = "streaming"
FULL_TEXT = "full_text"

_PREFIXES, _REFERENCES = 64, 16
"""How many prefixes and references are cached: some kilobytes and some megabytes each."""


class PromptSpec(NamedTuple):
    """The content of an utterance's prompt besides its text; names are case-insensitive.

    `speaker` None: no named speaker. `language` None or "auto": the model decides.
    """

    speaker: str | None = None
    language: str | None = None
    instructions: str | None = None
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's `inputs` [L, H] for the talker. `text_used`: number of text ids in it. `eos_used`:
    end-of-text is in it too, and every later frame gets `tts_pad`. `carried`: ids of a transcript
    longer than its recording, which the next frames get before those of the text."""

    inputs: Tensor
    text_used: int
    eos_used: bool
    carried: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Shown:
    """A reference in context: `spoken` [m + 1, H], codec bos and its frames; `text` [k, H]."""

    spoken: Tensor
    text: Tensor


class PromptBuilder:
    """Builds prompts for one checkpoint. `encode`: ids of plain text, no special tokens.

    Raises CheckpointError if the tokenizer and the checkpoint disagree.
    """

    def __init__(
        self,
        config: ModelConfig,
        talker: Talker,
        tables: CodeTables,
        encode: Callable[[str], Sequence[int]],
    ) -> None:
        self._config, self._talker, self._tables = config, talker, tables
        self._encode = encode
        ids = config.text
        opening = list(encode("assistant\n"))
        self._newline = list(encode("\n"))
        if opening != [ids.assistant, *self._newline] or len(opening) != 2:
            raise CheckpointError(
                f"the tokenizer gives {opening} for 'assistant\\n', but config.json says that "
                f"'assistant' is {ids.assistant}: these files do not belong together"
            )
        self._template = [ids.im_start, *opening]
        pad, bos, eos = talker.text([ids.tts_pad, ids.tts_bos, ids.tts_eos]).unbind(0)
        self.tts_pad: Tensor = pad
        """Text vector [H] of a frame after the end of the text."""
        self.tts_eos: Tensor = eos
        """Text vector [H] that marks, once, the end of the text."""
        self._tts_bos = bos
        self._prefix = lru_cache(_PREFIXES)(self._make_prefix)
        self._length = lru_cache(_PREFIXES)(self._count_prefix)
        self._shown = lru_cache(_REFERENCES)(self._show)

    @property
    def behind_text(self) -> tuple[int, int]:
        """Text ids of the full-text layout's last two positions, after the text."""
        return self._config.text.tts_eos, self._config.text.tts_pad

    @cached_property
    def sample_ids(self) -> tuple[int, ...]:
        """Token ids of a short text, for warming up."""
        return tuple(self._encode("Hello there, how are you?"))

    def check(self, spec: PromptSpec) -> None:
        """Raise RequestError if the checkpoint cannot do what `spec` asks."""
        config = self._config
        self._language_id(spec)
        self._speaker_id(spec)
        if spec.instructions and config.variant is Variant.BASE:
            raise RequestError(
                "a base checkpoint clones voices and takes no instructions; the 1.7B CustomVoice "
                "and VoiceDesign checkpoints do"
            )
        if spec.reference is not None and config.variant is not Variant.BASE:
            raise RequestError(
                f"a {config.variant} checkpoint cannot speak cloned voices; a Base checkpoint can"
            )
        if spec.reference is None and config.variant is Variant.BASE:
            raise RequestError(
                "a base checkpoint speaks cloned voices: name one, or load a CustomVoice "
                "checkpoint, which has voices of its own"
            )

    def prefix_length(self, spec: PromptSpec) -> int:
        """Return the number of positions before the text. Raises RequestError like `check`."""
        return self._length(spec)  # asked several times of every utterance

    def _count_prefix(self, spec: PromptSpec) -> int:
        self.check(spec)
        speaker = self._speaker_id(spec) is not None or spec.reference is not None
        return (
            len(self.instruction_ids(spec))
            + len(self._template)
            + len(self._thinking(spec))
            + int(speaker)
            + 1
        )

    def prompt_length(self, spec: PromptSpec) -> int:
        """Return the most positions of the prompt without the text, of which a reference covers
        some in the streaming layout. Raises RequestError like `check`."""
        reference, length = spec.reference, self.prefix_length(spec)
        if reference is None or reference.codes is None:
            return length
        return length + len(reference.text_ids) + len(reference.codes) + 1

    def text_position(self, spec: PromptSpec) -> int:
        """Return the position of the text's first id, in both layouts. Raises RequestError."""
        transcript = () if spec.reference is None else spec.reference.text_ids
        return self.prefix_length(spec) + len(transcript)

    def text_needed(self, spec: PromptSpec) -> int:
        """Return the text ids, if there are that many, that a streaming-layout prompt needs before
        frame 0. At 0 or less, -n, frame 0 and n more frames carry a transcript
        (`Reference.text_ahead`)."""
        return 1 if spec.reference is None else spec.reference.text_ahead

    def instruction_ids(self, spec: PromptSpec) -> list[int]:
        """Return the ids of the instruction in its template; none where it is ignored."""
        if not spec.instructions or not self._config.follows_instructions:
            return []
        ids = self._config.text
        body = self._encode("user\n" + spec.instructions)
        return [ids.im_start, *body, ids.im_end, *self._newline]

    def text(self, ids: Sequence[int]) -> Tensor:
        """Return text vectors [n, H]. One call for many ids costs little more than for one."""
        return self._talker.text(ids)

    @torch.inference_mode()
    def frames(self, codes: Tensor) -> Tensor:
        """Return codec vectors [n, H] of frames with codes [n, 16], on the talker's device."""
        return self._tables.summed(codes[:, 0], codes[:, 1:])

    @torch.inference_mode()
    def prompt(
        self, spec: PromptSpec, ids: Sequence[int], layout: str, *, finished: bool = True
    ) -> Prompt:
        """Return the prompt for the text known so far, in one of the two layouts.

        `ids` are those of the text alone. The full-text layout takes all of them. `finished`: the
        text is complete; this matters only for a reference with codes in the streaming layout.
        Raises RequestError.
        """
        self.check(spec)
        if not ids:
            raise RequestError("there is no text to speak")
        assert layout in (STREAMING, FULL_TEXT), f"unknown layout {layout!r}"
        prefix = self.prefix(spec)
        if spec.reference is not None and spec.reference.codes is not None:
            return self._in_context(prefix, spec.reference, ids, layout, finished)
        if layout == STREAMING:
            return Prompt(torch.cat((prefix, self.text(ids[:1]) + self.bos)), 1, False)
        tail = torch.cat((self._text_and_end(ids) + self.pad, self.tts_pad + self.bos))
        return Prompt(torch.cat((prefix, tail)), len(ids), True)

    @torch.inference_mode()
    def prefix(self, spec: PromptSpec) -> Tensor:
        """Return everything before the text [L, H], which is equal for all utterances of a `spec`
        and is cached. Callers must not write to it."""
        speaker, language = spec.speaker and spec.speaker.lower(), known_as(spec.language)
        return self._prefix(spec._replace(speaker=speaker, language=language))

    def _make_prefix(self, spec: PromptSpec) -> Tensor:
        opening = self.text(self.instruction_ids(spec) + self._template)
        rows = [self._talker.codec(self._thinking(spec))]
        speaker = self._speaker_id(spec)
        if spec.reference is not None:
            rows.append(spec.reference.speaker.to(opening)[None])  # raw: it is an embedding
        elif speaker is not None:
            rows.append(self._talker.codec([speaker]))
        control = torch.cat((*rows, self.pad))
        control[:-1] += self.tts_pad
        control[-1] += self._tts_bos
        return torch.cat((opening, control))

    def _in_context(
        self, prefix: Tensor, reference: Reference, ids: Sequence[int], layout: str, finished: bool
    ) -> Prompt:
        """Return a prompt with transcript and text on the text channel, and the reference's frames
        on the codec channel."""
        shown = self._shown(reference)
        text = torch.cat((shown.text, self._text_and_end(ids)))
        if layout == FULL_TEXT:
            tail = torch.cat((text + self.pad, shown.spoken + self.tts_pad))
            return Prompt(torch.cat((prefix, tail)), len(ids), True)
        length, known = len(shown.spoken), len(text) - 1
        assert finished or known >= length, "too little text for this reference"
        padding = self.tts_pad.expand(max(0, length - len(text)), -1)
        return Prompt(
            inputs=torch.cat((prefix, torch.cat((text[:length], padding)) + shown.spoken)),
            text_used=min(len(ids), max(0, reference.text_ahead)),
            eos_used=known < length,
            carried=reference.text_ids[length:],
        )

    def _show(self, reference: Reference) -> _Shown:
        assert reference.codes is not None, "only codes are shown in context"
        frames = self.frames(reference.codes.to(self._talker.device, torch.long))
        return _Shown(torch.cat((self.bos, frames)), self.text(reference.text_ids))

    def _text_and_end(self, ids: Sequence[int]) -> Tensor:
        return torch.cat((self.text(ids), self.tts_eos[None]))

    @cached_property
    def bos(self) -> Tensor:
        """Codec vector [1, H] of the position that frame 0 is made from, in both layouts."""
        return self._talker.codec([self._config.talker.bos_id])

    @cached_property
    def pad(self) -> Tensor:
        """Codec vector [1, H] under the full-text layout's text."""
        return self._talker.codec([self._config.talker.pad_id])

    def _thinking(self, spec: PromptSpec) -> list[int]:
        """Return the control ids that name the language, or say that it is not named."""
        talker, language = self._config.talker, self._language_id(spec)
        if language is None:
            return [talker.nothink_id, talker.think_bos_id, talker.think_eos_id]
        return [talker.think_id, talker.think_bos_id, language, talker.think_eos_id]

    def _language_id(self, spec: PromptSpec) -> int | None:
        """Return the language's id. A dialect speaker speaks the dialect, unless a language other
        than Chinese is named."""
        talker = self._config.talker
        language = known_as(spec.language)
        if language != AUTO and language not in self._config.languages:
            known = ", ".join((AUTO, *self._config.languages))
            message = f"unknown language {spec.language!r}; this checkpoint has: {known}"
            raise RequestError(message, "language")
        dialect = talker.dialects.get((spec.speaker or "").lower())
        if dialect is not None and language in (AUTO, "chinese"):
            return talker.languages[dialect]
        return None if language == AUTO else talker.languages[language]

    def _speaker_id(self, spec: PromptSpec) -> int | None:
        if not spec.speaker:
            return None
        speakers = self._config.talker.speakers
        if not speakers:
            raise RequestError(
                f"voice {spec.speaker!r} is unknown: a {self._config.variant} checkpoint has no "
                "named voices, a CustomVoice checkpoint has some"
            )
        if spec.speaker.lower() not in speakers:
            known = ", ".join(speakers)
            raise RequestError(f"unknown voice {spec.speaker!r}; this checkpoint has: {known}")
        return speakers[spec.speaker.lower()]
