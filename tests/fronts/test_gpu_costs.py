"""The stamp by which `throughput.py` measures how long a frame was on its way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.fronts import gpu_costs

TONE = (1_000 * np.sin(np.arange(1_920))).astype(np.int16)


@given(st.floats(0, 1e9), st.floats(0, 600), st.integers(0, 500))
def test_a_stamp_tells_its_age_after_the_way_through_floats(
    made: float, waited: float, before: int
) -> None:
    frame = TONE.astype(np.float32) / 32_767
    stamp = gpu_costs.stamp(made)
    frame[: len(stamp)] = stamp.astype(np.float32) / 32_767
    for scale in (32_767, 32_768):
        pcm = (frame * scale).astype(np.int16).tobytes()
        marked = gpu_costs.MARK.tobytes() + pcm[gpu_costs.MARK.nbytes :]
        found = gpu_costs.age(bytes(before) + marked, made + waited)
        assert found is not None and abs(found - waited) < 3e-5 + 1e-6 * made / 1e3
    assert gpu_costs.age(TONE.tobytes(), made) is None
