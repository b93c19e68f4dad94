"""The Ray Serve application: `serve run realtime_tts.fleet.ray_app:application`.

Only this module and `ray_members` are made of Ray's parts; what they do is in their neighbours,
which are free of Ray.
"""

from __future__ import annotations

from typing import Any

import msgspec
import ray
from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

from realtime_tts.errors import ConfigError
from realtime_tts.fleet.members import Member
from realtime_tts.fleet.ray_replica import Replica, ReplicaConfig
from realtime_tts.fleet.ray_roster import NAME, NAMESPACE, Roster

_CLOSE_SECONDS = 10.0


class FleetConfig(ReplicaConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many replicas there are, and what each of them takes from its node.

    `gpus`: of each replica; its server has an engine process for each. `cpus`, `resources`: what
    Ray books for it. `up`, `down`: the load on each replica (turns asked for, as a share of the
    capacity) above which there must be more and below which fewer. `downscale_delay_s`: for how
    long it must be lower. `interval_s`: between two looks at the load.
    """

    cpus: float = 1.0
    resources: dict[str, float] = {}
    replicas_per_node: int | None = None
    min_replicas: int = 2
    max_replicas: int = 8
    up: float = 0.6
    down: float = 0.3
    upscale_delay_s: float = 5.0
    downscale_delay_s: float = 300.0
    interval_s: float = 2.0
    health_period_s: float = 2.0


class Server:
    """A replica, by the names that Ray Serve calls."""

    # Ray Serve awaits it: a replica is ready when its server takes turns.
    async def __init__(self, config: dict[str, Any]) -> None:  # type: ignore[misc]
        book = roster()

        async def announce(member: Member) -> None:
            await book.announce.remote(member)

        async def leave(member: Member) -> None:
            await book.leave.remote(member)

        node = ray.util.get_node_ip_address()
        self._replica = Replica(msgspec.convert(config, ReplicaConfig), node, announce, leave)
        await self._replica.start()

    async def record_autoscaling_stats(self) -> dict[str, float]:
        return await self._replica.stats()

    async def check_health(self) -> None:
        await self._replica.check()

    async def where(self) -> dict[str, int | str]:
        """Return where the server is, for tests and for finding a replica's process."""
        server = self._replica.server
        return {"pid": server.pid, "host": server.member.host, "port": server.member.port}

    async def __del__(self) -> None:
        """Stop the server. Ray Serve awaits this before it ends the replica's process."""
        await self._replica.stop()


def roster() -> Any:
    """Return the cluster's roster, which the first caller makes."""
    options = {"namespace": NAMESPACE, "name": NAME, "lifetime": "detached", "max_restarts": -1}
    return ray.remote(Roster).options(num_cpus=0, get_if_exists=True, **options).remote()


def application(arguments: dict[str, Any]) -> serve.Application:
    """Return the application for these fields of FleetConfig. Raises ConfigError."""
    try:
        config = msgspec.convert(arguments, FleetConfig, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the fleet's configuration: {error}") from None
    scaling = AutoscalingConfig(
        min_replicas=config.min_replicas,
        max_replicas=config.max_replicas,
        upscale_delay_s=config.upscale_delay_s,
        downscale_delay_s=config.downscale_delay_s,
        metrics_interval_s=config.interval_s,
        look_back_period_s=2 * config.interval_s,
        policy=AutoscalingPolicy(
            policy_function="realtime_tts.fleet.ray_policy:Policy",
            policy_kwargs={"up": config.up, "down": config.down},
        ),
    )
    actor = {
        "num_cpus": config.cpus,
        "num_gpus": config.gpus,
        "resources": config.resources,
    }
    deployment = serve.deployment(
        name="server",
        autoscaling_config=scaling,
        ray_actor_options=actor,
        max_replicas_per_node=config.replicas_per_node,
        graceful_shutdown_timeout_s=config.drain_seconds + _CLOSE_SECONDS,
        graceful_shutdown_wait_loop_s=0.1,  # for requests through Ray, of which there are none
        health_check_period_s=config.health_period_s,
        health_check_timeout_s=10,
    )(Server)
    of_replica = {name: getattr(config, name) for name in ReplicaConfig.__struct_fields__}
    return deployment.bind(of_replica)
