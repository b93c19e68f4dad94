"""The commands that install an extra of this package, for messages about one that is missing."""

DISTRIBUTION = "realtime-tts-server"
"""The name of this package on an index."""


def install(extra: str) -> str:
    """Return what to type to install `extra`: in a checkout, and from an index that has us.

    A checkout stays editable: the copy that pip would make instead lacks the demo voice.
    """
    return f"pip install -e '.[{extra}]' in a checkout, or pip install '{DISTRIBUTION}[{extra}]'"
