"""Checks before a server starts, so that it ends with a message, rather than in a front."""

from __future__ import annotations

import re

from realtime_tts.config import ServerConfig
from realtime_tts.errors import ConfigError
from realtime_tts.extras import install


def check_access(config: ServerConfig) -> None:
    """Raise ConfigError for keys, or database addresses, that cannot be used."""
    if config.access is not None:
        from realtime_tts.access.access import Access

        Access(config.access)


def check_tracing(config: ServerConfig) -> None:
    """Raise ConfigError if turns should be traced, but cannot be in this environment."""
    if not config.tracing:
        return
    try:
        from realtime_tts.tracing.tracer import check_environment

        check_environment()
    except ImportError as error:
        raise ConfigError(f"--tracing needs OpenTelemetry: {install('tracing')}") from error
    except ValueError as error:  # of the SDK, which has some as the names of its own arguments
        why = re.sub(r"\bmax_\w+", lambda found: f"OTEL_BSP_{found[0].upper()}", str(error))
        raise ConfigError(f"--tracing cannot use the OTEL_* variables: {why}") from error
