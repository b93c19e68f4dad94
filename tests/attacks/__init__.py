"""Attacks on a running server: `make test-attacks` prints what was tried, expected and seen."""
