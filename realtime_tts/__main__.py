"""`python -m realtime_tts` is `realtime-tts`."""

import gc
import signal
import sys

from realtime_tts.signals import INTERRUPTED, end_at_signals


def run() -> int:
    """Run one command, as the command line says. Returns the exit status."""
    if sys.argv[1:2] in (["serve"], ["ingress"]):  # which run until a signal ends them
        end_at_signals()
    _keep_through_reloads()
    try:
        from realtime_tts.cli import main  # here, because Ctrl-C may come while it is imported

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        # What is left is Python's own end. It would look for garbage among all modules, which takes
        # half a second, and many times that on a busy machine.
        gc.freeze()
        # While Python ends, another Ctrl-C would print a traceback. A server ignores it by now.
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _keep_through_reloads() -> None:
    """Until the server handles SIGHUP, let it end nothing. A change that it tells of is seen
    anyway, by the time of the file. On a terminal it means that the terminal has gone.

    Here, because importing the server takes most of its start.
    """
    if "serve" not in sys.argv[1:2] or not hasattr(signal, "SIGHUP"):  # Windows has none
        return
    if not (sys.stderr and sys.stderr.isatty()):
        signal.signal(signal.SIGHUP, lambda *_: None)


if __name__ == "__main__":
    sys.exit(run())
