"""Write the trained parts as a checkpoint folder in the official format.

    python -m tools.demo_voice.export --out build/demo_voice/checkpoint

Weights are float16. The encoder stays behind: the demo voice speaks with its own voices only.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from tools.demo_voice import settings as ids
from tools.demo_voice.codes import load_codec
from tools.demo_voice.placeholder_encoder import CONFIG, encoder_tensors
from tools.demo_voice.settings import CODEBOOK_SIZE, CODEBOOKS, CODEC, StackSize
from tools.demo_voice.voice_model import POINTER_HEADS, POINTER_LAYER

_TOKENIZER = ("vocab.json", "merges.txt", "tokenizer_config.json")
_TRAINING_ONLY = ("phone_head.", "pitch_head.")
_LAST_LAYER = tuple(f"decoder.decoder.6.conv.{name}" for name in ("weight", "bias"))
"""Makes the samples, which are only clipped afterwards: its scale is that of the sound."""
_ENCODER = CONFIG | {"codebook_size": CODEBOOK_SIZE}
_VERSION = "4.57.3"
"""Of transformers, which the official package is written for."""


def write_voice(voice: dict[str, Tensor], tokenizer: Path, out: Path) -> None:
    """All but the codec. `voice`: the state dict of training."""
    out.mkdir(parents=True, exist_ok=True)
    for name in _TOKENIZER:
        shutil.copyfile(tokenizer / name, out / name)
    assistant = json.loads((out / "vocab.json").read_text("utf-8"))["assistant"]
    _write(out / "config.json", _config(assistant))
    _write(out / "generation_config.json", _GENERATION)
    _write(out / "preprocessor_config.json", _TEXT_PREPROCESSOR)
    talker = {
        f"talker.{name}": tensor
        for name, tensor in voice.items()
        if not name.startswith(_TRAINING_ONLY)
    }
    _save(talker, out / "model.safetensors")


def mean(voices: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Average the weights of trainings that began with the same ones, which is often better than
    each of them (https://arxiv.org/abs/2203.05482)."""
    names = voices[0]
    return {name: torch.stack([voice[name].float() for voice in voices]).mean(0) for name in names}


def write_codec(codec: dict[str, Tensor], out: Path, louder: float = 0.0) -> None:
    """The codec, in a folder of its own. `codec`: the state dict of training; `louder`: dB that its
    sound is raised by."""
    folder = out / "speech_tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", _codec_config())
    _write(folder / "preprocessor_config.json", _AUDIO_PREPROCESSOR)
    tensors = _codec_tensors(codec)
    for name in _LAST_LAYER:
        tensors[name] = tensors[name] * 10 ** (louder / 20)
    _save(tensors, folder / "model.safetensors")


def _codec_tensors(codec: dict[str, Tensor]) -> dict[str, Tensor]:
    """Under the official names; codebook sums divided by their counts, which become 1: in
    float16 a sum over much use would overflow."""
    tensors = dict(encoder_tensors(_ENCODER))
    for name, tensor in codec.items():
        if name.startswith("encoder."):
            continue
        if name.endswith("embedding_sum"):
            usage = codec[name.replace("embedding_sum", "cluster_usage")].clamp(min=1e-5)
            tensor = tensor / usage[:, None]
        elif name.endswith("cluster_usage"):
            tensor = torch.ones_like(tensor)
        # The decoder's convolutions and the quantizer both live under "decoder." there.
        tensors[name if name.startswith("decoder.") else f"decoder.{name}"] = tensor
    return tensors


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    halves = {name: tensor.half().cpu().contiguous() for name, tensor in tensors.items()}
    for name, tensor in halves.items():
        assert tensor.isfinite().all(), f"{name} does not fit float16"
    save_file(halves, path, metadata={"format": "pt"})
    path.chmod(0o644)  # it is written for its owner alone


def _write(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def _stack(size: StackSize, model_type: str) -> dict[str, object]:
    return {
        **asdict(size),
        "model_type": model_type,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0,
        "initializer_range": 0.02,
        "use_cache": True,
        "num_code_groups": CODEBOOKS,
        "use_sliding_window": False,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "max_position_embeddings": 4096,
    }


def _config(assistant: int) -> dict[str, object]:
    predictor = {
        **_stack(ids.PREDICTOR, "qwen3_tts_talker_code_predictor"),
        "vocab_size": CODEBOOK_SIZE,
        "max_window_layers": ids.PREDICTOR.num_hidden_layers,
        "layer_types": ["full_attention"] * ids.PREDICTOR.num_hidden_layers,
        "rope_scaling": None,
    }
    half = ids.TALKER.head_dim // 2
    side = half * 10 // 32  # as the released models share the angles among three axes
    sections = [half - 2 * side, side, side]
    talker = {
        **_stack(ids.TALKER, "qwen3_tts_talker"),
        "vocab_size": ids.TALKER_VOCAB,
        "text_vocab_size": ids.TEXT_VOCAB,
        "text_hidden_size": ids.TEXT_WIDTH,
        "rope_scaling": {
            "interleaved": True,
            "mrope_section": sections,
            "rope_type": "default",
            "type": "default",
        },
        "position_id_per_seconds": 13,
        "codec_pad_id": ids.PAD,
        "codec_bos_id": ids.BOS,
        "codec_eos_token_id": ids.EOS,
        "codec_think_id": ids.THINK,
        "codec_nothink_id": ids.NOTHINK,
        "codec_think_bos_id": ids.THINK_BOS,
        "codec_think_eos_id": ids.THINK_EOS,
        "codec_language_id": {"english": ids.ENGLISH},
        "spk_id": ids.SPEAKERS,
        "spk_is_dialect": dict.fromkeys(ids.SPEAKERS, False),
        "code_predictor_config": predictor,
    }
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_model_size": "0b6",
        "tts_model_type": "custom_voice",
        "text_normalization": True,
        "safe_positions": 600,
        "alignment_heads": [[POINTER_LAYER, head] for head in range(POINTER_HEADS)],
        "assistant_token_id": assistant,
        "im_start_token_id": ids.IM_START,
        "im_end_token_id": ids.IM_END,
        "tts_pad_token_id": ids.TTS_PAD,
        "tts_bos_token_id": ids.TTS_BOS,
        "tts_eos_token_id": ids.TTS_EOS,
        "talker_config": talker,
        "transformers_version": _VERSION,
    }


def _codec_config() -> dict[str, object]:
    decoder = asdict(CODEC)
    scale = decoder.pop("layer_scale")
    decoder.pop("encoder_width")
    decoder |= {
        "codebook_size": CODEBOOK_SIZE,
        "semantic_codebook_size": CODEBOOK_SIZE,
        "num_quantizers": CODEBOOKS,
        "num_key_value_heads": CODEC.num_attention_heads,
        "layer_scale_initial_scale": scale,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "max_position_embeddings": 8000,
    }
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "model_type": "qwen3_tts_tokenizer_12hz",
        "encoder_valid_num_quantizers": CODEBOOKS,
        "input_sample_rate": 24_000,
        "output_sample_rate": 24_000,
        "decode_upsample_rate": 1920,
        "encode_downsample_rate": 1920,
        "encoder_config": _ENCODER,
        "decoder_config": decoder,
        "transformers_version": _VERSION,
    }


_GENERATION: dict[str, object] = {
    "do_sample": True,
    "repetition_penalty": 1.0,
    "temperature": 0.3,
    "top_p": 1.0,
    "top_k": 50,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.3,
    "subtalker_top_p": 1.0,
    "subtalker_top_k": 50,
    "max_new_tokens": 1024,
}
_TEXT_PREPROCESSOR: dict[str, object] = {
    "padding_side": "left",
    "padding_value": 0.0,
    "processor_class": "Qwen3TTSProcessor",
    "return_attention_mask": True,
}
_AUDIO_PREPROCESSOR: dict[str, object] = {
    "chunk_length_s": None,
    "feature_extractor_type": "EncodecFeatureExtractor",
    "feature_size": 1,
    "overlap": None,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": True,
    "sampling_rate": 24_000,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument(
        "--voice",
        type=Path,
        nargs="+",
        default=[folder / "voice.pt"],
        help="several trainings that began with the same weights are averaged",
    )
    parser.add_argument(
        "--codec", type=Path, default=folder / "codec.pt", help="or a checkpoint folder"
    )
    parser.add_argument("--tokenizer", type=Path, default=folder / "tokenizer")
    parser.add_argument("--out", type=Path, default=folder / "checkpoint")
    parser.add_argument("--louder", type=float, default=0.0, help="dB to raise the sound by")
    given = parser.parse_args()
    if given.louder and given.codec.is_dir():
        parser.error(f"--louder {given.louder} is for a trained codec; {given.codec} is exported")
    trained = [torch.load(path, map_location="cpu", weights_only=True) for path in given.voice]
    write_voice(mean([state["average"] for state in trained]), given.tokenizer, given.out)
    if given.codec.is_dir():
        part = "speech_tokenizer"
        shutil.copytree(given.codec / part, given.out / part, dirs_exist_ok=True)
    else:
        codec = load_codec(given.codec, torch.device("cpu")).state_dict()
        write_codec(codec, given.out, given.louder)
    size = sum(path.stat().st_size for path in given.out.rglob("*") if path.is_file())
    print(f"{given.out}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
