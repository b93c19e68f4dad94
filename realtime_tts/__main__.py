"""`python -m realtime_tts` is `realtime-tts`."""

import signal
import sys


def run() -> int:
    """Run one command, as the command line says. Returns the exit status."""
    try:
        from realtime_tts.cli import main  # here, because Ctrl-C may come while it is imported

        return main()
    except KeyboardInterrupt:
        return 130
    finally:
        # While Python ends, another Ctrl-C would print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(run())
