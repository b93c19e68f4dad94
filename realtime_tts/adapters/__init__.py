"""Voice-agent frameworks over the client, a module for each: none is imported unless asked for."""
