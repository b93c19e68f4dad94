import argparse

import pytest

from realtime_tts.cli.session_arguments import (
    add_server_arguments,
    add_voice_arguments,
    session_options,
    shown_command,
)
from realtime_tts.client import SessionOptions


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_server_arguments(parser)
    add_voice_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {}),
        (
            "--voice ava --language english --seed 3",
            {"voice": "ava", "language": "english", "seed": 3},
        ),
        ("--top-k 5 --top-p 0.5", {"sampling": {"top_k": 5, "top_p": 0.5}}),
        ("--temperature 0", {"sampling": {"temperature": 0.0, "predictor": {"temperature": 0.0}}}),
        ("--temperature 0.7", {"sampling": {"temperature": 0.7}}),
        ("--text-filter off --layout streaming", {"text_filter": "off", "layout": "streaming"}),
        (
            "--temperature 0 --predictor-temperature 0.9 --predictor-top-k 7",
            {"sampling": {"temperature": 0.0, "predictor": {"temperature": 0.9, "top_k": 7}}},
        ),
        (
            "--lexicon SQL=sequel --lexicon Nguyen=win --lead-ms 500",
            {"lexicon": {"SQL": "sequel", "Nguyen": "win"}, "lead_ms": 500},
        ),
        (
            "--lexicons medical,brands@3",
            {"lexicons": ["medical", "brands@3"]},
        ),
    ],
)
def test_flags_become_options_and_silence_stays_silence(
    words: str, options: SessionOptions
) -> None:
    assert session_options(parse(*words.split())) == options


@pytest.mark.parametrize("flag", ["--lexicon=SQL", "--lexicon==x", "--layout=best", "--top-k=1.5"])
def test_a_flag_that_cannot_be_read_is_refused_by_name(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(flag)
    assert f"argument {flag.partition('=')[0]}" in capsys.readouterr().err


def test_address_and_key_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALTIME_TTS_URL", "ws://speech.example")
    monkeypatch.setenv("REALTIME_TTS_API_KEY", "from-the-environment")
    arguments = parse()
    assert (arguments.url, arguments.api_key) == ("ws://speech.example", "from-the-environment")
    arguments = parse("--url", "ws://h", "--api-key", "k")
    assert (arguments.url, arguments.api_key) == ("ws://h", "k")


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", "s3cret"],
        ["--api-key=s3cret"],
        ["--api", "s3cret"],
        ["--ap=s3cret"],
        ["--api-key", "s3 cret"],
        ["--start", "--slots 4 --api-key s3cret"],
    ],
    ids=str,
)
def test_a_shown_command_has_no_key(words: list[str]) -> None:
    shown = shown_command(["bench", *words, "--turns", "3"])
    assert "s3" not in shown and "***" in shown
    assert shown.startswith("realtime-tts bench ") and shown.endswith("--turns 3")
