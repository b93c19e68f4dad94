"""This server inside agent frameworks. Each module needs its framework, by the extra of its name.

    realtime_tts.adapters.pipecat    Pipecat: RealtimeTTSService

Nothing is imported here, so that none of them asks for another's framework.
"""
