"""How exact word times are, measured, and the attention heads that they come from."""
