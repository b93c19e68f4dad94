"""A server with several fronts: the supervisor, and a front in a process of its own."""
