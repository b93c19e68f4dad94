"""The evaluation's figures as Markdown for people and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.demo_voice.durations import Endings, Turn
from tools.demo_voice.sound import Sound
from tools.demo_voice.words import WordErrors, interval, pooled

ALL = "all"
"""Stands for every voice in a table."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Held-out texts of one set, spoken by one voice of one source and recognised.

    `source`: teacher, codec, full_text or streaming. `mel_db`: mean distance of the mel spectra
    from the teacher's, where the timing is the teacher's.
    """

    set: str
    source: str
    voice: str
    texts: tuple[str, ...]
    results: tuple[WordErrors, ...]
    mel_db: float | None = None
    recogniser: str = "pocketsphinx"


@dataclass(slots=True)
class Report:
    """Everything measured. `conditions`: what a reader has to know, by name."""

    conditions: dict[str, Any]
    scored: list[Scored] = field(default_factory=list)
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    """By the set of texts."""
    sounds: list[Sound] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write report.md and report.json."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(self.markdown(), encoding="utf-8")
        text = json.dumps(self.as_dict(), indent=1, ensure_ascii=False)
        (folder / "report.json").write_text(text + "\n", encoding="utf-8")

    def markdown(self) -> str:
        """Tables, then lists of what went wrong."""
        parts = ["# Demo voice: evaluation"]
        parts += [f"- {name}: {value}" for name, value in self.conditions.items()]
        parts += [
            "",
            *self._words(),
            *self._sound(),
            *self._codec(),
            *self._endings(),
            *self._offenders(),
        ]
        return "\n".join(parts) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Plain types: every sentence and turn, and the sums."""
        return {
            "conditions": self.conditions,
            "word_errors": [_words_as_dict(each) for each in self._with_sums()],
            "sounds": [asdict(sound) for sound in self.sounds],
            "turns": {
                name: [asdict(turn) | {"fault": turn.fault} for turn in turns]
                for name, turns in self.turns.items()
            },
            "endings": [
                {"set": name, "layout": layout, "voice": voice} | asdict(endings)
                for name, layout, voice, endings in self._endings_rows()
            ],
        }

    def _with_sums(self) -> list[Scored]:
        """All rows, and those of several voices together after the last of them."""
        groups: dict[tuple[str, str, str], list[Scored]] = {}
        for each in self.scored:
            groups.setdefault((each.recogniser, each.set, each.source), []).append(each)
        return [row for rows in groups.values() for row in (*rows, *_sum(rows))]

    def _words(self) -> Iterator[str]:
        for recogniser in dict.fromkeys(each.recogniser for each in self.scored):
            yield f"## Word error rate ({recogniser})\n"
            yield "95 % intervals by drawing sentences again; errors are S + D + I.\n"
            rows = [_words_row(each) for each in self._with_sums() if each.recogniser == recogniser]
            yield from table(
                ("set", "source", "voice", "word error rate", "interval", "errors", "words"), rows
            )

    def _sound(self) -> Iterator[str]:
        if not self.sounds:
            return
        yield "## Sound\n"
        yield (
            "Pitch in semitones: range (5th to 95th percentile), movement from the first quarter "
            "second to the last, end (within the last), each of statements and of questions. "
            "Correlation of F0 with the teacher's.\n"
        )
        yield from table(SOUND_HEAD, [_sound_row(sound) for sound in self.sounds])

    def _codec(self) -> Iterator[str]:
        rows = [
            (each.set, each.source, each.voice, f"{each.mel_db:.2f}")
            for each in self._with_sums()
            if each.mel_db is not None
        ]
        if rows:
            yield "## Mel distance to the teacher, dB\n"
            yield from table(("set", "source", "voice", "mel distance"), rows)

    def _endings_rows(self) -> Iterator[tuple[str, str, str, Endings]]:
        for name, turns in self.turns.items():
            for layout in dict.fromkeys(turn.layout for turn in turns):
                here = [turn for turn in turns if turn.layout == layout]
                voices = list(dict.fromkeys(turn.voice for turn in here))
                for voice in voices:
                    mine = (turn for turn in here if turn.voice == voice)
                    yield name, layout, voice, Endings.of(mine)
                if len(voices) > 1:
                    yield name, layout, ALL, Endings.of(here)

    def _endings(self) -> Iterator[str]:
        rows = [
            (name, layout, voice, e.turns, e.guard, e.early, e.runaway, f"{e.ratio:.3f}")
            for name, layout, voice, e in self._endings_rows()
        ]
        if rows:
            yield "## Endings\n"
            yield "Duration is the student's divided by the teacher's, mean over turns.\n"
            yield from table(
                ("set", "layout", "voice", "turns", "guard stops", "early", "runaway", "duration"),
                rows,
            )

    def _offenders(self) -> Iterator[str]:
        bad = [(name, turn) for name, turns in self.turns.items() for turn in turns if turn.fault]
        if bad:
            yield "## Turns that ended wrongly\n"
        for name, turn in bad:
            times = f"{turn.seconds:.1f} s, teacher {turn.teacher_seconds:.1f} s"
            why = turn.fault if turn.fault != "guard" else turn.reason
            yield f"- {name}, {turn.layout}, {turn.voice}: {why} ({times}): {turn.text}"


def _sum(rows: Sequence[Scored]) -> list[Scored]:
    """The voices together; nothing for a single one."""
    if len(rows) < 2:
        return []
    texts = tuple(text for row in rows for text in row.texts)
    results = tuple(result for row in rows for result in row.results)
    distances = [row.mel_db for row in rows if row.mel_db is not None]
    mean = sum(distances) / len(distances) if distances else None
    recogniser = rows[0].recogniser
    return [Scored(rows[0].set, rows[0].source, ALL, texts, results, mean, recogniser)]


def _words_row(each: Scored) -> tuple[object, ...]:
    total = pooled(each.results)
    low, high = interval(each.results)
    kinds = f"{total.substitutions} + {total.deletions} + {total.insertions}"
    rate, errors = f"{total.rate:.3f}", f"{total.errors} = {kinds}"
    return each.set, each.source, each.voice, rate, f"{low:.3f}-{high:.3f}", errors, total.words


SOUND_HEAD = (
    *("set", "source", "voice", "F0, Hz", "range", "movement .", "movement ?", "end .", "end ?"),
    *("correlation", "voiced", "harmonics to noise, dB", "bandwidth, kHz", "LUFS"),
    *("flutter, dB", "lead, ms"),
)


def _sound_row(sound: Sound) -> list[object]:
    return [
        *(sound.set, sound.source, sound.voice, f"{sound.hertz:.0f}", f"{sound.range:.1f}"),
        *(f"{sound.movement_statements:.1f}", f"{sound.movement_questions:.1f}"),
        *(f"{sound.end_statements:.1f}", f"{sound.end_questions:.1f}"),
        *(f"{sound.correlation:.2f}", f"{sound.voiced:.2f}", f"{sound.harmonics_db:.1f}"),
        *(f"{sound.bandwidth_hertz / 1000:.1f}", f"{sound.loudness_lufs:.1f}"),
        *(f"{sound.flutter_db:.1f}", f"{sound.lead_ms:.0f}"),
    ]


def _words_as_dict(each: Scored) -> dict[str, Any]:
    total = pooled(each.results)
    low, high = interval(each.results)
    summary = {
        "set": each.set,
        "source": each.source,
        "voice": each.voice,
        "recogniser": each.recogniser,
        "rate": total.rate,
        "interval": [low, high],
        "errors": total.errors,
        "words": total.words,
        "mel_db": each.mel_db,
    }
    if each.voice == ALL:
        return summary
    pairs = zip(each.texts, each.results, strict=True)
    return summary | {"sentences": [{"text": text} | asdict(result) for text, result in pairs]}


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Lines of a Markdown table and an empty one."""
    yield _row(head)
    yield _row(["---"] * len(head))
    for row in rows:
        yield _row([str(cell) for cell in row])
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
