"""The orders of service that deadline order is compared with."""

from __future__ import annotations

from tts_scheduler.policy import DEADLINE_ORDER, Policy

ROUND_ROBIN = Policy("round robin", lambda row, _due: row.served, protects=False)
ARRIVAL_ORDER = Policy("arrival order", lambda row, _due: row.order, protects=False)
POLICIES = (DEADLINE_ORDER, ROUND_ROBIN, ARRIVAL_ORDER)
