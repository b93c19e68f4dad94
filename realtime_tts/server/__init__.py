"""The ASGI front: sockets, sessions, health. It never touches torch."""
