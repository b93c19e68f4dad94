"""The measurement says why it ended, if it did."""

from __future__ import annotations

import pytest

from tests.fronts.throughput import Child


def test_a_process_that_ends_in_place_of_an_answer_is_named_with_its_last_words() -> None:
    program = "import sys; print(1); sys.stdout.flush(); sys.stdin.readline(); sys.exit('no port')"
    child = Child("the server", "-c", program)
    assert child.answer() == 1
    child.ask("more")
    with pytest.raises(SystemExit, match="the server ended with status 1:\nno port"):
        child.answer()
    child.ask("nobody is there")
    child.kill()
