"""Measures how exact word times are, and finds the attention heads that they come from."""
