"""The whole front on a fake engine, as the server's own tests have it."""

from tests.server.conftest import eventually, peer, slices, speech

__all__ = ["eventually", "peer", "slices", "speech"]
