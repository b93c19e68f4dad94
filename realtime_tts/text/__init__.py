"""Text to token ids: sanitizer, speech text filter, normalizer, incremental tokenizer; and back.

Start at `pipeline.py`; `TextPipeline` is what the server uses for each turn.
"""
