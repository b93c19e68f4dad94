"""`python -m realtime_tts` is `realtime-tts`."""

import sys

from realtime_tts.cli import main

sys.exit(main())
