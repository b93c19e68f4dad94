"""PROTOCOL.md is what the code does: its examples are the fixtures, its conversations are played.

After a change to PROTOCOL.md, `python tests/protocol/test_protocol_document.py` writes
messages.json anew.
"""

from __future__ import annotations

import json
import re
from collections import deque
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.effects import (
    Close,
    Effect,
    HeardReport,
    InterruptTurn,
    OpenTurn,
    ReportHeard,
    Send,
    TurnFailure,
    TurnStats,
)
from realtime_tts.protocol.expected import EXPECTED
from realtime_tts.protocol.parsing import (
    decode_client_message,
    encode,
    parse_server_message,
)
from realtime_tts.protocol.query import QUERY_FIELDS
from realtime_tts.protocol.session import ServerInfo, Session
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.sampling import PredictorSampling, Sampling

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "PROTOCOL.md").read_text("utf-8")
FIXTURES = Path(__file__).with_name("messages.json")
DIRECTIONS = {"Client → server": "client", "Server → client": "server"}

Fixtures = dict[str, list[dict[str, Any]]]


def fixtures_in(document: str) -> Fixtures:
    """Every example: {client, server: [{section, message}], conversations: [{title, steps}]}."""
    fixtures: Fixtures = {"client": [], "server": [], "conversations": []}
    for chapter in re.split(r"^## ", document, flags=re.M)[1:]:
        title, _, body = chapter.partition("\n")
        for section in re.split(r"^### ", body, flags=re.M)[1:]:
            name, _, text = section.partition("\n")
            if title in DIRECTIONS:
                fixtures[DIRECTIONS[title]] += [
                    {"section": name.strip("`"), "message": json.loads(block)}
                    for block in _blocks("json", text)
                ]
            elif title == "Conversations":
                (block,) = _blocks("text", text)
                steps = [_step(line) for line in block.splitlines()]
                fixtures["conversations"].append({"title": name.split(". ")[1], "steps": steps})
    return fixtures


def _blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def _step(line: str) -> dict[str, Any]:
    if line.startswith("→ "):
        return {"client": line[2:]}
    if audio := re.fullmatch(r"← (?:(\d+) × )?([\d,]+) bytes of audio", line):
        return {"audio_bytes": int(audio[2].replace(",", "")), "packets": int(audio[1] or 1)}
    if close := re.fullmatch(r"← close (\d+)", line):
        return {"close": int(close[1])}
    if passed := re.fullmatch(r"… (\d+) s pass", line):
        return {"seconds": int(passed[1])}
    assert line.startswith("← "), line
    return {"server": json.loads(line[2:])}


EXAMPLES = fixtures_in(DOCUMENT)


def test_the_fixtures_are_the_examples_of_the_document() -> None:
    assert json.loads(FIXTURES.read_text("utf-8")) == EXAMPLES, f"run `python {__file__}`"


@pytest.mark.parametrize("kind", sorted({*m.CLIENT_MESSAGES, *m.SERVER_MESSAGES}))
def test_every_message_has_a_section_with_an_example(kind: str) -> None:
    side = "client" if kind in m.CLIENT_MESSAGES else "server"
    assert kind in {example["section"] for example in EXAMPLES[side]}


@pytest.mark.parametrize("side", ["client", "server"])
def test_every_example_parses_to_its_own_section_and_encodes_to_itself(side: str) -> None:
    for example in EXAMPLES[side]:
        raw = json.dumps(example["message"])
        client = side == "client"
        message = decode_client_message(raw).message if client else parse_server_message(raw)
        assert message.__struct_config__.tag == example["section"]
        assert json.loads(encode(message)) == example["message"]


def test_the_ready_example_shows_every_setting_and_the_default_limits() -> None:
    (ready,) = [e["message"] for e in EXAMPLES["server"] if e["section"] == "ready"]
    assert ready["limits"] == msgspec.to_builtins(Limits())
    settings = msgspec.to_builtins(SessionSettings())
    assert ready["settings"].keys() == settings.keys()
    assert ready["settings"]["sampling"].keys() == settings["sampling"].keys()
    assert ready["settings"]["audio"] == settings["audio"]


def test_every_field_is_described_in_the_section_of_its_message() -> None:
    sections = {
        name.strip("`"): text
        for name, _, text in (s.partition("\n") for s in re.split(r"^### ", DOCUMENT, flags=re.M))
    }
    for kind, struct in {**m.CLIENT_MESSAGES, **m.SERVER_MESSAGES}.items():
        for field in struct.__struct_fields__:
            assert re.search(rf"^\|.*`{field}[`.].*\|", sections[kind], flags=re.M), (kind, field)


def test_every_client_field_has_words_for_its_error() -> None:
    structs = [*m.CLIENT_MESSAGES.values(), Sampling, PredictorSampling, AudioFormat]
    fields = {field for struct in structs for field in struct.__struct_fields__}
    assert fields | {"type"} == EXPECTED.keys()
    assert "an object" not in {
        EXPECTED[name] for name in fields - {"sampling", "predictor", "audio"}
    }


def test_every_query_parameter_limit_and_close_code_is_in_a_table() -> None:
    for name, path in QUERY_FIELDS.items():
        assert re.search(rf"`{name}` \| `{re.escape('.'.join(path))}`", DOCUMENT), name
    limits = DOCUMENT.split("\n## Limits")[1]
    for name in Limits.__struct_fields__:
        assert f"`{name}`" in limits, name
    for code in m.CloseCode:
        assert f"\n| {int(code)} |" in DOCUMENT, code


def test_the_table_of_limits_has_the_defaults() -> None:
    limits = DOCUMENT.split("\n## Limits")[1].split("\n## ")[0]
    told: dict[str, int] = {}
    for names, default in re.findall(r"^\| (`.*?`) \| (.*?) \|", limits, re.MULTILINE):
        numbers = [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", default)]
        told |= zip(re.findall(r"`(\w+)`", names), numbers, strict=False)
    defaults = msgspec.structs.asdict(Limits())
    del defaults["max_turn_audio_ms"]  # the model's
    assert told == defaults


def test_every_code_that_the_package_sends_is_in_the_tables() -> None:
    errors = DOCUMENT.split("\n## Errors")[1].split("\n## Warnings")[0]
    warnings = DOCUMENT.split("\n## Warnings")[1].split("\n## Close codes")[0]
    package = ROOT / "realtime_tts" / "protocol"
    source = "\n".join(path.read_text("utf-8") for path in sorted(package.glob("*.py")))
    sent_errors = re.findall(r'(?:TurnFailure|fail|refused)\(\s*"(\w+)"', source)
    sent_errors += [
        c for c in re.findall(r'^class .*code="(\w+)"', source, flags=re.M) if c != "protocol_error"
    ]
    sent_warnings = re.findall(r'warn(?:ing)?\(\s*"(\w+)"', source)
    assert len(set(sent_errors)) >= 12 and len(set(sent_warnings)) >= 8, "the search is broken"
    for code in sent_errors:
        assert f"`{code}`" in errors, code
    for code in sent_warnings:
        assert f"`{code}`" in warnings, code
    for reason in get_args(m.TurnReason):
        assert f"`{reason}`" in DOCUMENT, reason


class Stage:
    """Plays a conversation: a real Session, and an engine that does what the script says next."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        info = ServerInfo("s-1", "realtime-tts 0.1.0", "demo-voice", ("ava",), ("english",))
        self.session = Session(info)
        self.steps = steps
        self.now = 0.0
        self.heard: deque[Send | Close] = deque()
        self.asked: deque[Effect] = deque()
        self.samples = 0
        self.session.begin()

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send | Close):
                self.heard.append(effect)
            else:
                self.asked.append(effect)
            if isinstance(effect, OpenTurn):
                self.samples = 0 if effect.resume is None else effect.resume.samples

    def play(self) -> None:
        for number, step in enumerate(self.steps):
            match step:
                case {"client": raw}:
                    self.take(self.session.receive(raw, self.now))
                case {"seconds": seconds}:
                    self.now += seconds
                    self.take(self.session.poll(self.now))
                case {"audio_bytes": size, "packets": packets}:
                    assert not self.heard, "a message was due before this audio"
                    assert size <= 4_096 and size % 2 == 0
                    self.samples += packets * size // 2
                case {"close": code}:
                    closed = self.heard.popleft()
                    assert isinstance(closed, Close) and closed.code == code
                case {"server": {"type": "turn.words"} as message}:  # the connection's own
                    assert not self.heard and self.session.on_air == message["turn_id"]
                    spoken = max(word["end_ms"] for word in message["words"])
                    assert spoken <= self.samples / m.SAMPLE_RATE * 1000, "beyond the audio"
                case {"server": {"type": "turn.state"} as message}:  # and this
                    assert not self.heard and self.session.on_air == message["turn_id"]
                    packet = self.steps[number + 1]["audio_bytes"] // 2
                    assert message["samples"] == self.samples + packet
                case {"server": message}:
                    if not self.heard:
                        self.engine_does(message, number)
                    said = self.heard.popleft()
                    assert isinstance(said, Send)
                    assert json.loads(encode(said.message)) == message
        assert not self.heard

    def engine_does(self, message: dict[str, Any], number: int) -> None:
        """Report to the session what leads to `message`."""
        match message["type"]:
            case "turn.started":
                self.take(self.session.turn_started(message["turn_id"], message["layout"]))
            case "turn.interrupted":
                self.take(self.answer_interrupt(message, number))
            case "error":
                failure = TurnFailure(
                    message["code"],
                    message["message"],
                    message["retryable"],
                    message["retry_after_ms"],
                )
                stats = self.stats_after(number)
                self.take(self.session.turn_failed(message["turn_id"], failure, stats))
            case "turn.done":
                reason = message["reason"].replace("idle", "complete")  # idle is not the engine's
                stats = self.stats_after(number - 1)
                self.take(self.session.turn_finished(message["turn_id"], reason, stats))
            case _:
                raise AssertionError(f"the session should have said {message}")

    def answer_interrupt(self, message: dict[str, Any], number: int) -> list[Effect]:
        fields = ("samples_sent", "played_ms", "text_spoken", "text_remaining")
        report = HeardReport(*(message[field] for field in fields))
        turn_id = message["turn_id"]
        match self.asked.pop():
            case InterruptTurn(turn_id=asked):
                assert asked == turn_id and report.samples_sent == self.samples
                return self.session.turn_interrupted(turn_id, report, self.stats_after(number))
            case ReportHeard(turn_id=asked):
                assert asked == turn_id
                return self.session.turn_heard(turn_id, report)
            case other:
                raise AssertionError(f"nobody asked for a report, but {other}")

    def stats_after(self, number: int) -> TurnStats:
        done = self.steps[number + 1]["server"]
        assert done["samples"] == self.samples, "the packets shown do not add up"
        fields = ("samples", "ttfa_ms", "underruns", "held_ms")
        return TurnStats(*(done[field] for field in fields))


@pytest.mark.parametrize("conversation", EXAMPLES["conversations"], ids=lambda c: c["title"])
def test_a_session_says_in_each_conversation_what_the_document_says(
    conversation: dict[str, Any],
) -> None:
    Stage(conversation["steps"]).play()


if __name__ == "__main__":
    FIXTURES.write_text(json.dumps(EXAMPLES, indent=1, ensure_ascii=False) + "\n", "utf-8")
