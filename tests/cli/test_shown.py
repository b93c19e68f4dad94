import pytest

from realtime_tts.cli.session_arguments import shown_command


@pytest.mark.parametrize(
    "words",
    [["--api-key", "s3cret"], ["--api-key=s3cret"], ["--api", "s3cret"], ["--ap=s3cret"],
     ["--api-key", "s3 cret"], ["--start", "--slots 4 --api-key s3cret"]],
    ids=str,
)  # fmt: skip
def test_a_shown_command_has_no_key(words: list[str]) -> None:
    shown = shown_command(["bench", *words, "--turns", "3"])
    assert "s3" not in shown and "***" in shown
    assert shown.startswith("realtime-tts bench ") and shown.endswith("--turns 3")
