"""The embedded demo voice: a small checkpoint in the official format, so nothing is fetched."""

from pathlib import Path

NAME = "demo"
"""What `--model demo` means."""

FOLDER = Path(__file__).parent / "checkpoint"
"""The checkpoint: config.json, model.safetensors, tokenizer files, speech_tokenizer/."""
