"""The demo voice: a small checkpoint in the official format, so nothing is fetched."""

from pathlib import Path

from realtime_tts.errors import CheckpointError

NAME = "demo"
"""What `--model demo` means."""

FOLDER = Path(__file__).parent / "checkpoint"
"""The checkpoint: config.json, model.safetensors, tokenizer files, speech_tokenizer/.

Every checkout has it. Elsewhere it comes with a distribution of its own (`pyproject.toml` here)."""


def folder() -> Path:
    """`FOLDER`, where it is installed. Raises CheckpointError."""
    if not FOLDER.is_dir():
        raise CheckpointError(
            "the demo voice is not installed: pip install ./realtime_tts/demo_voice in a checkout, "
            "or pip install realtime-tts-demo-voice; or name a checkpoint with --model"
        )
    return FOLDER
