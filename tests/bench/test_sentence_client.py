import pytest

from realtime_tts.bench.sentence_client import whole_sentences


@pytest.mark.parametrize(
    ("text", "sentences", "rest"),
    [
        ("I am writing a sentence.", [], "I am writing a sentence."),
        ("I am writing a sentence. And", [], "I am writing a sentence. And"),
        ("I am writing a sentence. And another", ["I am writing a sentence."], "And another"),
        ("Yes. I am writing another. This one", [], "Yes. I am writing another. This one"),
        ("Yes. I am writing another. This one is", ["Yes. I am writing another."], "This one is"),
        (
            "It costs 9.30 euros in all, or 12.50 with",
            [],
            "It costs 9.30 euros in all, or 12.50 with",
        ),
    ],
)
def test_a_sentence_goes_out_when_it_is_long_enough_and_text_behind_it_is_there(
    text: str, sentences: list[str], rest: str
) -> None:
    assert whole_sentences(text) == (sentences, rest)
