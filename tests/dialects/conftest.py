"""Peers and slices of text, as the server's own tests have them."""

from tests.server.conftest import peer, slices

__all__ = ["peer", "slices"]
