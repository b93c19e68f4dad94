"""Settings, each defined once: from flags, the environment and a file, and reloaded by a running
server."""
