"""Triton accepts its kernels for GPUs that need not be there, in a process that does not interpret.

One process for all: most of the time goes into its imports.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, realtime_tts.kernels
print("triton" in sys.modules)
from tests.kernels import compile_all, compile_codec
compile_all.main(80, 90)
print("codec")
compile_codec.main(64, 1)
"""


@pytest.fixture(scope="module")
def told(compiling: dict[str, str]) -> str:
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=compiling | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout[-500:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_package_does_not_import_triton(told: str) -> None:
    assert told.splitlines()[0] == "False"


def test_every_kernel_compiles(told: str) -> None:
    """To machine code, without a GPU: the interpreter accepts what the compiler does not."""
    wanted = {
        "_add_rms_norm",
        "_combine",
        "_decode",
        "_first_codes",
        "_keep_frame",
        "_prompt",
        "_rms_norm",
        "_rope_and_store",
        "_sample",
        "_split_k_product",
        "_store_prefix",
        "_swiglu",
        "_swiglu_product",
    }
    lines = told.partition("codec\n")[0].splitlines()[1:]
    launched = {tuple(line.split()) for line in lines}
    assert launched == {(target, name) for target in ("80", "90") for name in wanted}


def test_every_launch_of_the_released_codec_compiles_for_an_h200(told: str) -> None:
    """And no kernel needs more registers than there are: none has anything on a stack."""
    lines = [line.split() for line in told.partition("codec\n")[2].splitlines()]
    assert len({name for name, _, _ in lines}) == 12
    assert [line for line in lines if int(line[2])] == []
