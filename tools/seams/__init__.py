"""Measures ways to join utterances: how a turn continues after its text was closed."""
