"""What `realtime-tts doctor` looks at: the machine, the packages, and a sentence as a test."""
