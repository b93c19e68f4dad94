"""Turns samples into bytes, and bytes into packets."""
