"""Qwen3-TTS 12 Hz as plain torch modules: talker, code predictor, codec. No loop, no sessions.

How an utterance is made of its parts:

    model = load_model("path/or/hub-id", device="cpu", dtype=torch.float32)      # SpeechModel
    prompts = model.prompt_builder(encode)          # encode: str -> token ids, no special tokens
    state = model.new_state(slots=8)                # SpeechState: KV, sampling, codec, by slot

    state.begin(slot, Sampling(...), seed=7)        # clears the slot
    prompt = prompts.prompt(PromptSpec(speaker="ryan", language="english"), ids, "streaming")
    hidden = model.talker.prefill(prompt.inputs, slot, state.kv)                 # [L,H] -> [H]
    hidden = model.talker.decode(inputs, slots, state.kv)                        # [B,H] -> [B,H]
    frame = model.frame(hidden, slots, state)       # hidden [B,H]; rows may be new or old ones
    # Frame: codes [B,16], embedding [B,H], ended [B] (first code was end of speech), failed [B]
    inputs = frame.embedding + text                 # text [B,H]: see below
    samples = model.codec.decode(codes, slots, state.codec)       # [B,T,16] -> [B,T*1920] fp32
    state.clear(slot)

The text vector added to frame f (f = 0, 1, ...): `prompt.carried` and the text ids after
`prompt.text_used`, one each, `prompts.text(ids) -> [n,H]`; then `prompts.tts_eos` [H] once unless
`prompt.eos_used`; then `prompts.tts_pad` [H] for ever. In the full-text layout every frame gets
`prompts.tts_pad`.

A Base checkpoint speaks a `Voice`: `PromptSpec(reference=to_reference(voice, config, encode))`, and
`ReferenceSound.begin(slot, reference)` readies the codec. `VoiceEncoder` makes voices.

Rows do not influence each other, and on the CPU in float32 their codes come from the same bits in
any batch, slot and company. Samples do not depend on the pieces in which frames are decoded.

Set the number of CPU threads before loading. All calls run in inference mode; a state must be used
from one thread at a time. Parts are plain objects, not `nn.Module`s: weights arrive once, on their
device, fused and packed, and attribute access is a measurable part of a small model's step.
"""

from realtime_tts.checkpoint import find_checkpoint
from realtime_tts.model.config import Variant
from realtime_tts.model.prompt import PromptBuilder, PromptSpec
from realtime_tts.model.reference import Reference, ReferenceSound, to_reference
from realtime_tts.model.speech_model import SpeechModel, load_model
from realtime_tts.model.voice import Voice, VoiceLookup
from realtime_tts.model.voice_file import load_voice

__all__ = [
    "PromptBuilder",
    "PromptSpec",
    "Reference",
    "ReferenceSound",
    "SpeechModel",
    "Variant",
    "Voice",
    "VoiceLookup",
    "find_checkpoint",
    "load_model",
    "load_voice",
    "to_reference",
]
