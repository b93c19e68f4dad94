"""Run a fleet on this machine until Ctrl-C. `make fleet ARGS="--engine fake"` needs no torch."""

from __future__ import annotations

import argparse
import signal
import threading

from tools.ray_fleet import local_fleet

WHERE = """\
  http://127.0.0.1:{port}/        the demo page, through HAProxy
  http://127.0.0.1:8265/#/serve   Ray's dashboard: replicas and their logs
  {members}   the servers, as HAProxy is told them
  realtime-tts say --url ws://127.0.0.1:{port} "Hello there."
  realtime-tts bench --url ws://127.0.0.1:{port} --sessions 6    adds a replica
Ctrl-C ends everything."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the ingress (default: 8000)")
    parser.add_argument("--nodes", type=int, default=3, help="of the Ray cluster (default: 3)")
    parser.add_argument("--engine", choices=("demo", "fake"), default="demo")
    parser.add_argument("--slots", type=int, default=4, help="of each replica (default: 4)")
    parser.add_argument("--max-replicas", type=int, help="(default: one on each node)")
    arguments = parser.parse_args()
    ended = threading.Event()
    engine = ["--engine", "fake"] if arguments.engine == "fake" else ["--threads", "1"]

    print(f"Starting Ray with {arguments.nodes} nodes, two replicas and HAProxy: half a minute.")
    with local_fleet(arguments.port, arguments.nodes, dashboard=True) as fleet:
        # From here on, a Ctrl-C ends everything in order; a second one is ignored.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        fleet.deploy(
            serve=[*engine, "--slots", str(arguments.slots)],
            drain_seconds=10,
            downscale_delay_s=30,
            max_replicas=arguments.max_replicas or max(2, arguments.nodes),
            replicas_per_node=1,
        )
        fleet.until_ready()
        print(WHERE.format(port=arguments.port, members=fleet.members_file), flush=True)
        ended.wait()
        print("Ending: turns may finish for ten seconds.")


if __name__ == "__main__":
    main()
