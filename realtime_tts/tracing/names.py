"""The names of spans, their events and their attributes. docs/tracing.md explains each.

The first group is of OpenTelemetry's semantic conventions, for generative AI and for HTTP; the
others are ours.
"""

OPERATION = "text_to_speech"
OPERATION_NAME = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
OUTPUT_TYPE = "gen_ai.output.type"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
ERROR_TYPE = "error.type"
METHOD, PATH = "http.request.method", "url.path"
STATUS = "http.response.status_code"
SESSION = "session.id"

TURN = "realtime_tts.turn.id"
REASON = "realtime_tts.reason"
CHARACTERS = "realtime_tts.characters"
AUDIO_SECONDS = "realtime_tts.audio.seconds"
TTFA = "realtime_tts.ttfa.seconds"
UNDERRUNS = "realtime_tts.underruns"
HELD = "realtime_tts.held.seconds"
HELD_INSIDE_WORD = "realtime_tts.held_inside_word"
HOLDS = "realtime_tts.holds"
MOVES = "realtime_tts.moves"
RESUMED = "realtime_tts.resumed"
LATE = "realtime_tts.late.seconds"
QUEUE_OF = "realtime_tts.queue.of"
LAYOUT = "realtime_tts.layout"
ENCODE_SECONDS = "realtime_tts.encode.seconds"
FRONT = "realtime_tts.front"
ENGINE = "realtime_tts.engine"

QUEUE, TOKENISE, PREFILL, FIRST_PACKET = "queue", "tokenise", "prefill", "first_packet"
HOLD, ENCODE, DRAIN = "hold", "encode", "drain"
MOVED, UNDERRUN = "moved", "underrun"
REFUSED = "refused"
