"""Keep a file of the members that a Ray cluster runs, for `realtime-tts ingress --members-file`.

    python -m realtime_tts.fleet.ray_members members.txt --address ray://head:10001

It is a process beside the ingress, not a part of it: Ray ends its clients when the cluster's head
is gone for long, and the ingress must go on with its calls. While the cluster does not answer, the
file stays as it is.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from realtime_tts.fleet.members import Member
from realtime_tts.fleet.ray_roster import ANNOUNCE_SECONDS, NAMESPACE
from realtime_tts.logs import configure_logging, event

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 5.0


def main() -> None:
    """Run until it is ended, or Ray is gone: it must be started again then."""
    parser = argparse.ArgumentParser(description="Keep a file of the servers of a Ray cluster.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--address", default="auto", help="of the cluster (default: this machine)")
    arguments = parser.parse_args()
    file: Path = arguments.file
    file.touch()
    configure_logging("json")
    follow(file, arguments.address)


def follow(file: Path, address: str) -> None:
    """Write the file whenever the members change. Ray raises or exits when the cluster is gone."""
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError

    from realtime_tts.fleet.ray_app import roster

    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="warning")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # Ray's own handler prints where it was
    book = roster()
    known: list[Member] | None = None
    while True:
        time.sleep(ANNOUNCE_SECONDS)
        try:
            members = ray.get(book.members.remote(), timeout=_TIMEOUT_SECONDS)
        except (GetTimeoutError, RayActorError) as error:  # it starts, perhaps on another node
            event(log, logging.WARNING, "fleet.roster_silent", why=str(error))
            continue
        if members is not None and members != known:
            write(file, members)
            known = members


def write(file: Path, members: Iterable[Member]) -> None:
    """Replace the file in one step, so that half of it is never read."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text("".join(f"{one.authority}/{one.agent_port}\n" for one in members))
    new.replace(file)


if __name__ == "__main__":
    main()
