"""What `realtime-tts doctor` checks: the machine, the packages, and a sentence as a test."""
