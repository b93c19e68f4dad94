"""A fleet on this machine, without containers: Ray with several nodes, replicas, HAProxy.

For `make fleet` and for tests. Everything is a real process of its kind. Servers and the ingress
listen on the loopback address, Ray's own processes where Ray has them listen.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray.cluster_utils import Cluster

from realtime_tts.errors import RealtimeTTSError
from realtime_tts.fleet.ray_app import application
from realtime_tts.fleet.ray_roster import NAMESPACE

HOST, APP = "127.0.0.1", "realtime-tts"
_READY_SECONDS = 180.0
_END_SECONDS = 20.0
_OBJECT_STORE_BYTES = 80 * 1024 * 1024


@dataclass
class LocalFleet:
    """A cluster with an ingress at `port` and the application in it."""

    cluster: Any
    port: int
    members_file: Path

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://{HOST}:{self.port}"

    @property
    def members(self) -> list[str]:
        """The members as the ingress gets them."""
        return self.members_file.read_text().split()

    def deploy(self, **config: Any) -> None:
        """Run the application with these fields of FleetConfig. Over one that runs, this is a
        rolling upgrade; returns when all replicas are new."""
        given = {"host": HOST, "trusted_proxies": [HOST], "gpus": 0} | config
        serve.run(application(given), name=APP, route_prefix=None)

    def handle(self) -> Any:
        """Return the handle of the deployment, for calls to a replica."""
        return serve.get_deployment_handle("server", APP)

    def until_ready(self) -> None:
        """Wait until the ingress has a server. Raises RealtimeTTSError after three minutes."""
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=2):
                    return
            time.sleep(0.2)
        raise RealtimeTTSError("no server of the fleet was ready after three minutes")


@contextlib.contextmanager
def local_fleet(port: int, nodes: int, dashboard: bool = False) -> Iterator[LocalFleet]:
    """Start a fleet, without the application at first. At the end of the block it is drained, then
    everything is ended.

    `dashboard`: Ray's, at its usual port.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with contextlib.ExitStack() as ending:
        folder = Path(tempfile.mkdtemp(prefix="tts-"))  # short: there are sockets in it
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
        ending.enter_context(_ray_files_in(folder))
        members = folder / "members"
        members.touch()
        cluster = ending.enter_context(_ray(nodes, dashboard))
        following = "realtime_tts.fleet.ray_members", str(members), "--address", cluster.address
        ending.enter_context(_process(*following))
        bind = "--bind", f"{HOST}:{port}", "--drain-seconds", "1"
        ingress = "realtime_tts", "ingress", "--members-file", str(members), *bind
        ending.enter_context(_process(*ingress))
        serve.start(http_options={"location": "NoServer"}, logging_config={"log_level": "WARNING"})
        ending.callback(serve.shutdown)
        yield LocalFleet(cluster, port, members)


@contextlib.contextmanager
def _ray_files_in(folder: Path) -> Iterator[None]:
    """Have Ray keep its files here, the address of the cluster, too. Its usual folder may not
    exist, or has the address of another cluster of this machine."""
    before = os.environ.get("RAY_TMPDIR")
    os.environ["RAY_TMPDIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["RAY_TMPDIR"]
        else:
            os.environ["RAY_TMPDIR"] = before


@contextlib.contextmanager
def _ray(nodes: int, dashboard: bool) -> Iterator[Any]:
    """Start a cluster that this process is connected with. Each node claims to have one core."""
    node = {"num_cpus": 1, "object_store_memory": _OBJECT_STORE_BYTES}
    cluster = Cluster()
    try:
        cluster.add_node(include_dashboard=dashboard, **node)
        for _ in range(nodes - 1):
            cluster.add_node(**node)
        ray.init(cluster.address, namespace=NAMESPACE, log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextlib.contextmanager
def _process(module: str, *words: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C is for us, and we end it
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
