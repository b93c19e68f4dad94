"""For all tests: property tests judge by what comes out, never by the clock.

A busy machine may stop a test for a second, anywhere; that says nothing of the code. Their examples
are the same in every run, so that a red run can be run again; new ones are looked for with
`--hypothesis-profile=explore`.
"""

import pytest
from hypothesis import HealthCheck, settings

# What the tests of a part share asserts, too, and shall say what was found.
pytest.register_assert_rewrite(
    *(f"tests.{part}" for part in ("dialects", "engine", "kernels", "server", "voices"))
)

_BUSY = [HealthCheck.too_slow]
settings.register_profile("explore", deadline=None, suppress_health_check=_BUSY)
settings.register_profile(
    "house", deadline=None, suppress_health_check=_BUSY, derandomize=True, database=None
)
settings.load_profile("house")
