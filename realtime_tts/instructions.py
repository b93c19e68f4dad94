"""The wording of the instructions to a checkpoint that takes some."""


def manner(emotion: str) -> str:
    """Return the instruction to speak like this: `sad`, `warm and slow`."""
    return f"Speak in this manner: {emotion}."
