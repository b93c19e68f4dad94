"""Carries out plans: the model on its slots, the loop that drives it, and a fake for tests."""
