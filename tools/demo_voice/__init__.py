"""How the embedded demo voice is made; README.md says how to run it."""
