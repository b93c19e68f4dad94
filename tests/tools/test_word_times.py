"""The score that finds aligning heads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tools.word_times.heads import best_heads, follows, write

TOKENS = 30


def looks(*heads: list[int]) -> Tensor:
    """A layer of heads that look at these tokens, frame by frame: [frames, 1, heads, tokens]."""
    places = torch.tensor(heads).T
    return torch.nn.functional.one_hot(places, TOKENS).float().unsqueeze(1)


def test_a_path_through_all_of_the_text_scores_one() -> None:
    assert follows([number // 3 for number in range(3 * TOKENS)], TOKENS) == 1.0


@pytest.mark.parametrize(
    ("tokens", "least", "most"),
    [
        ([0] * 90, 0.0, 0.2),  # one token, for ever
        ([number // 3 for number in range(45)], 0.5, 0.7),  # half of the text
        ([TOKENS - 1 - number // 3 for number in range(90)], 0.0, 0.1),  # backwards
        ([number % TOKENS for number in range(90)], 0.3, 0.4),  # three times, three times as fast
    ],
)
def test_other_paths_score_less(tokens: list[int], least: float, most: float) -> None:
    assert least <= follows(tokens, TOKENS) <= most


def test_the_heads_that_follow_the_text_are_found_and_written(tmp_path: Path) -> None:
    good = [number // 3 for number in range(3 * TOKENS)]
    late = [0, 0, *good[:-2]]
    spoken = [looks([7] * len(good), good, good[::-1], late)]
    heads, ranked = best_heads(spoken)
    assert heads == [(0, 1), (0, 3)] and len(ranked) == 4
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_tts"}')
    write(tmp_path, heads)
    written = json.loads((tmp_path / "config.json").read_text())
    assert written == {"model_type": "qwen3_tts", "alignment_heads": [[0, 1], [0, 3]]}


def test_where_no_head_follows_the_text_none_is_chosen() -> None:
    heads, _ = best_heads([looks([7] * 90, [number % TOKENS for number in range(90)])])
    assert heads == []
