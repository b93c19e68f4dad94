"""A server with several fronts: the supervisor, and the fronts, each in a process of its own."""
