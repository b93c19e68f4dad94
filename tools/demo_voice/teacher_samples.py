"""Makes the teacher's listening samples: what the demo voice says in docs/samples, said by Kokoro.

python -m tools.demo_voice.teacher_samples [docs/samples]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.demo_voice.evaluate import Teacher
from tools.demo_voice.teacher import VOICES
from tools.samples import FOLDER, GREETING, encoded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made = Path("build/demo_voice")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--weights", type=Path, default=made / "kokoro.pt")
    parser.add_argument("--styles", type=Path, default=made / "styles", help="of kokoro-js")
    given = parser.parse_args()
    teacher = Teacher(given.weights, given.styles)
    for voice in VOICES:
        recording = teacher.speak(GREETING.format(name=voice.capitalize()), voice)
        data = encoded(recording.int16())
        (given.folder / f"teacher-{voice}.opus").write_bytes(data)
        print(f"teacher-{voice}.opus: {recording.seconds:.1f} s, {len(data)} bytes")


if __name__ == "__main__":
    main()
