"""For all tests: property tests judge by what comes out, never by the clock.

A busy machine may stop a test for a second, anywhere; that says nothing of the code.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
