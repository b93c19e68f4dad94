"""Text to token ids: sanitizer, speech text filter, incremental tokenizer, and the way back.

Start at `pipeline.py`; `TextPipeline` is what the server uses for each turn.
"""

from realtime_tts.text.filter import SpeechTextFilter
from realtime_tts.text.incremental import IncrementalTokenizer
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.sanitizer import Sanitizer
from realtime_tts.text.spans import Piece
from realtime_tts.text.spoken import SpokenSplit, split_spoken
from realtime_tts.text.tokenizer import Qwen2Tokenizer

__all__ = [
    "IncrementalTokenizer",
    "Piece",
    "Qwen2Tokenizer",
    "Sanitizer",
    "SpeechTextFilter",
    "SpokenSplit",
    "TextPipeline",
    "split_spoken",
]
