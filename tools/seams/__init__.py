"""How a turn goes on after its text was closed: ways to join utterances, measured."""
