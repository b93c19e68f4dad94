"""Real-time streaming text-to-speech: text deltas in, PCM packets out."""

__version__ = "0.1.0"
