"""The native protocol without I/O: messages, settings, the Session state machine."""
