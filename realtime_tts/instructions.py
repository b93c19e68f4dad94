"""The words in which a checkpoint that takes instructions is told how to speak."""


def manner(emotion: str) -> str:
    """The instruction to speak like this: `sad`, `warm and slow`."""
    return f"Speak in this manner: {emotion}."
