"""TTS plugins for voice-agent frameworks, on the client. Each is imported only if asked for."""
