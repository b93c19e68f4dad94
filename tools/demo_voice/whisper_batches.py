"""Whisper tiny.en for many half minutes of speech at a time, also on a GPU.

The weights are those of `whisper.py`, in CTranslate2's file; the network is that of transformers.
It is greedy and writes no times. Evaluations use `whisper.py`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from tools.demo_voice.recognise import SAMPLE_RATE
from tools.demo_voice.whisper import MISSING, model_folder

WINDOW_SECONDS = 30
_FILTER, _HOP = 400, 160  # samples of Whisper's spectra
_BEGINNING = ("startoftranscript", "notimestamps")
_MOST_TOKENS = 200
_ASKED_EVERY = 16  # tokens: whether all texts have ended
_HALF = 4  # CTranslate2's number for float16
_LAYERS = {
    "ffn/layer_norm": "final_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
    "self_attention/layer_norm": "self_attn_layer_norm",
    "self_attention/linear_0": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
    "self_attention/linear_1": "self_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_1": "encoder_attn.k_proj encoder_attn.v_proj",
    "attention/linear_2": "encoder_attn.out_proj",
}
"""Names in the file, and in the network; some hold several matrices, one below the other."""
_PARTS = {"gamma": "weight", "beta": "bias", "weight": "weight", "bias": "bias"}


class WhisperBatches:
    """Loaded once. Raises ImportError without its packages."""

    def __init__(self, device: torch.device) -> None:
        try:
            from tokenizers import Tokenizer
            from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperModel
        except ImportError as error:
            raise ImportError(MISSING) from error
        folder = model_folder()
        self._device = device
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._start = [self._tokenizer.token_to_id(f"<|{name}|>") for name in _BEGINNING]
        (self._end,) = self._tokenizer.encode("<|endoftext|>", add_special_tokens=False).ids
        weights = dict(_network_weights(folder / "model.bin"))
        vocabulary = len(weights["decoder.embed_tokens.weight"])
        known = json.loads((folder / "config.json").read_text("utf-8"))
        never = [*known["suppress_ids"], *range(self._end + 1, vocabulary)]
        self._never = torch.zeros(vocabulary, device=device).index_fill_(
            0, torch.tensor(never, device=device), -torch.inf
        )
        self._never_first = self._never.index_fill(
            0, torch.tensor(known["suppress_ids_begin"], device=device), -torch.inf
        )
        config = WhisperConfig(
            vocab_size=vocabulary,
            d_model=384,
            encoder_layers=4,
            decoder_layers=4,
            encoder_attention_heads=6,
            decoder_attention_heads=6,
            encoder_ffn_dim=1536,
            decoder_ffn_dim=1536,
        )
        model = WhisperModel(config)
        model.load_state_dict(weights)
        half = device.type == "cuda"
        self._model: Any = model.to(device, torch.float16 if half else torch.float32).eval()
        self._mels = torch.tensor(WhisperFeatureExtractor().mel_filters.T, dtype=torch.float32)
        self._mels = self._mels.to(device)

    @torch.inference_mode()
    def transcribe(
        self, sounds: Sequence[np.ndarray], sample_rate: int, least: float = 0.0
    ) -> list[str]:
        """The texts heard. `sounds`: [N] int16, half a minute each at most. Tokens whose
        probability is below `least` are left out."""
        whole = torch.zeros(len(sounds), WINDOW_SECONDS * sample_rate, device=self._device)
        for row, sound in zip(whole, sounds, strict=True):
            row[: len(sound)] = torch.from_numpy(sound.copy()).to(self._device) / 32768
        heard = self._model.encoder(self._spectra(_resampled(whole, sample_rate))).last_hidden_state
        texts = []
        for row, chances in zip(*(found.tolist() for found in self._greedy(heard)), strict=True):
            end = row.index(self._end) if self._end in row else len(row)
            said = zip(row[:end], chances[:end], strict=True)
            texts.append([token for token, chance in said if chance >= least])
        return [text.strip() for text in self._tokenizer.decode_batch(texts)]

    def _spectra(self, sound: Tensor) -> Tensor:
        """[B, N] to log mel spectra [B, 80, N / 160], as Whisper was taught with."""
        window = torch.hann_window(_FILTER, device=self._device)
        spectra = torch.stft(sound, _FILTER, _HOP, window=window, return_complex=True)
        mels = self._mels @ spectra[..., :-1].abs() ** 2
        log = mels.clamp(min=1e-10).log10()
        log = torch.maximum(log, log.amax((1, 2), keepdim=True) - 8.0)
        return ((log + 4.0) / 4.0).to(self._model.dtype)

    def _greedy(self, heard: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T] token ids, and the probability of each; what stands behind the end of a text
        means nothing."""
        from transformers import DynamicCache, EncoderDecoderCache

        decoder, held = self._model.decoder, EncoderDecoderCache(DynamicCache(), DynamicCache())
        # transformers 5.24 calls it `cache`, and 5.40 knows no other name.
        name = "cache" if "cache" in signature(decoder.forward).parameters else "past_key_values"
        words = decoder.embed_tokens.weight
        given = torch.tensor(self._start, device=self._device).repeat(len(heard), 1)
        said: list[Tensor] = []
        chances: list[Tensor] = []
        over = torch.zeros(len(heard), dtype=torch.bool, device=self._device)
        for step in range(_MOST_TOKENS):
            hidden = decoder(
                input_ids=given, encoder_hidden_states=heard, use_cache=True, **{name: held}
            ).last_hidden_state[:, -1]
            logits = (hidden @ words.T).float() + (self._never if step else self._never_first)
            chance, given = logits.softmax(-1).max(-1, keepdim=True)
            said.append(given)
            chances.append(chance)
            over |= given[:, 0] == self._end
            if step % _ASKED_EVERY == 0 and bool(over.all()):
                break
        return torch.cat(said, 1), torch.cat(chances, 1)


def _resampled(sound: Tensor, sample_rate: int) -> Tensor:
    """[B, N] at `sample_rate` to Whisper's, by its spectrum."""
    size = sound.shape[1] * SAMPLE_RATE // sample_rate
    spectrum = torch.fft.rfft(sound)[:, : size // 2 + 1]
    return torch.fft.irfft(spectrum, size) * (size / sound.shape[1])


def _network_weights(path: Path) -> Iterator[tuple[str, Tensor]]:
    """The weights of a CTranslate2 file by their names in the network. Raises ValueError for a
    file of another kind."""
    for name, values in _stored(path):
        side, _, rest = name.partition("/")
        where, _, part = rest.rpartition("/")
        if side not in ("encoder", "decoder") or part not in (*_PARTS, "encodings"):
            continue
        if where == "position_encodings":
            yield f"{side}.embed_positions.weight", values
        elif where == "embeddings":
            yield f"{side}.embed_tokens.weight", values
        elif where.startswith("layer_") and "/" in where:
            number, _, kind = where.removeprefix("layer_").partition("/")
            names = _LAYERS[kind].split()
            for matrix, piece in zip(names, values.chunk(len(names)), strict=True):
                if not (part == "bias" and matrix.endswith("k_proj")):  # it is zero
                    yield f"{side}.layers.{number}.{matrix}.{_PARTS[part]}", piece
        elif where != "projection":  # the embeddings again
            yield f"{side}.{where}.{_PARTS[part]}", values


def _stored(path: Path) -> Iterator[tuple[str, Tensor]]:
    """The float16 matrices of a CTranslate2 file.
    https://github.com/OpenNMT/CTranslate2/blob/master/python/ctranslate2/specs/model_spec.py"""
    with path.open("rb") as file:
        version, name, _ = _unpack(file, "<I")[0], _text(file), _unpack(file, "<I")
        if version != 6 or name != "WhisperSpec":
            raise ValueError(f"{path}: expected a WhisperSpec of version 6, got {name} {version}")
        for _ in range(_unpack(file, "<I")[0]):
            name = _text(file)
            shape = _unpack(file, f"<{_unpack(file, '<B')[0]}I")
            kind, size = _unpack(file, "<BI")
            data = file.read(size)
            if kind == _HALF:
                yield name, torch.from_numpy(np.frombuffer(data, "<f2").reshape(shape).copy())


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _text(file: BinaryIO) -> str:
    return file.read(_unpack(file, "<H")[0])[:-1].decode()
