"""Samples to bytes, and bytes to packets."""
