"""The whole front on a fake engine, as the server's own tests have it."""

from tests.server.conftest import peer, slices, speech

__all__ = ["peer", "slices", "speech"]
