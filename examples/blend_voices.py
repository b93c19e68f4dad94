"""Blend two registered voices into a new one, by weight.

python examples/blend_voices.py anna ben 0.3 annaben [ws://127.0.0.1:8000]

0.3 is Ben's share; Anna has the rest. Only the sound is blended: the new voice has an embedding and
no recording, so it speaks in the model's own style.
"""

import argparse
import sys

from realtime_tts import RealtimeTTSError, VoiceClient


def main(first: str, second: str, share: float, name: str, server: str) -> None:
    voices = VoiceClient(server)
    one, other = voices.embedding(first), voices.embedding(second)
    if one.get("model") != other.get("model"):
        sys.exit(f"{first} and {second} belong to different checkpoints")
    pairs = zip(one["embedding"], other["embedding"], strict=True)
    blend = [(1 - share) * a + share * b for a, b in pairs]
    made = voices.register(name, blend, model=one.get("model"))
    print(f"registered {made['id']}, {1 - share:.0%} {first} and {share:.0%} {second}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Blend two registered voices into a new one.")
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("share", type=float)
    parser.add_argument("name")
    parser.add_argument("server", nargs="?", default="ws://127.0.0.1:8000")
    try:
        main(**vars(parser.parse_args()))
    except RealtimeTTSError as error:  # such as no server
        sys.exit(str(error))
