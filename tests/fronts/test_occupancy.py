"""The table in shared memory by which fronts know of each other."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.server.occupancy import Occupancy

NOTES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5_000), st.integers(0, 64)))


@given(NOTES)
def test_each_front_reads_the_sum_of_the_others(notes: list[tuple[int, int, int]]) -> None:
    table = Occupancy.make(4)
    last = dict.fromkeys(range(1, 5), (0, 0))
    try:
        for front, sessions, unauthenticated in notes:
            table.row(front).note(sessions, unauthenticated)
            last[front] = sessions, unauthenticated
        for front in last:
            others = [numbers for number, numbers in last.items() if number != front]
            row = table.row(front)
            found = row.sessions, row.unauthenticated
            assert found == (sum(one for one, _ in others), sum(two for _, two in others))
    finally:
        table.close()


def test_another_process_reads_and_writes_the_same_table() -> None:
    table = Occupancy.make(2)
    try:
        table.row(1).note(7, 2)
        code = (
            "from realtime_tts.server.occupancy import Occupancy\n"
            f"row = Occupancy({table.file}, 2).row(2)\n"
            "row.beat(1); row.beat(2); row.note(11, 1)\n"
            "print(row.sessions, row.unauthenticated)"
        )
        command = [sys.executable, "-c", code]
        other = table.row(2)
        for _ in range(6):
            other.hand_over()
        done = subprocess.run(command, pass_fds=[table.file], capture_output=True, check=True)
        assert done.stdout.split() == [b"7", b"2"]
        assert (other.sockets, other.beats) == (4, 2)
        assert table.row(1).sessions == 11
        other.clear()
        assert (table.row(1).sessions, other.sockets, other.beats) == (0, 0, 0)
    finally:
        table.close()


def test_a_table_leaves_no_file_open() -> None:
    table = Occupancy.make(3)
    file = table.file
    table.close()
    table.close()
    try:
        os.fstat(file)
    except OSError:
        return
    raise AssertionError("the file is still open")
