"""Which rows go first, may start or may rest: small pure functions over one utterance.

They return times ("from when", "until when") rather than yes or no, so that the plan and the time
at which the loop wakes up can never disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from tts_scheduler.config import SchedulerConfig
from tts_scheduler.plan import Layout
from tts_scheduler.playback import FRAME_SAMPLES
from tts_scheduler.utterance import Utterance

Key = Callable[[Utterance, float], float]
"""Sort key of a row, from the row and its due time; the smallest goes first."""


MEMORY_AHEAD = 2.0
"""Seconds of speech, of everyone on air, for which a start has to leave free memory."""

SILENT_WAIT = 0.02
"""Seconds that a start waits, for each frame of a silent start, for text that lets them go into its
prefill. It is about what they take to make on a CPU: so it is at most twice that too late."""

PREEMPT_AHEAD = 0.5
"""Seconds before its playback deadline at which a row may preempt: time for the copies, and for the
frames of a packet.

Also by how much later than this row its victims must need their pages: two rows that are equally
urgent do not swap each other out in every step."""


@dataclass(frozen=True, slots=True)
class Policy:
    """An order of rows. `protects`: work enters a step only if no listener pays for it."""

    name: str
    key: Key
    protects: bool


DEADLINE_ORDER = Policy("deadline order", lambda _row, due: due, protects=True)
ROUND_ROBIN = Policy("round robin", lambda row, _due: row.served, protects=False)
ARRIVAL_ORDER = Policy("arrival order", lambda row, _due: row.order, protects=False)
POLICIES = (DEADLINE_ORDER, ROUND_ROBIN, ARRIVAL_ORDER)


def next_packet(row: Utterance) -> tuple[float, int]:
    """Return the playback deadline of the packet that the row's next frame is for, and how many
    further steps that packet needs after that frame.

    The deadline is minus infinity if there is no listener yet. Packets that the frames made so far
    will fill come before this one: for those, only the codec has to run.
    """
    playback = row.playback
    deadline = playback.runs_out_at
    size = playback.packet_samples
    made = playback.unsent_samples + row.codec_pending * FRAME_SAMPLES
    further = (size - made % size - 1) // FRAME_SAMPLES
    if deadline is None:
        return -inf, further
    if made >= size:
        deadline += made // size * size / playback.sample_rate
    return deadline, further


def needs_memory_by(row: Utterance) -> float:
    """Return when a row without pages for its next frame costs its listener a gap.

    This is the playback deadline of its next packet. A turn that is not heard yet should wait
    rather than take the memory of one that is: it counts as due two seconds after its text arrived.
    """
    deadline, _ = next_packet(row)
    if deadline > -inf:
        return deadline
    return (row.opened_at if row.first_text_at is None else row.first_text_at) + MEMORY_AHEAD


def may_preempt_at(row: Utterance) -> float:
    """Return from when a row without pages for its next frame may take those of others."""
    return needs_memory_by(row) - PREEMPT_AHEAD


def due(row: Utterance, step_seconds: float) -> float:
    """Return when the row's next step must end at the latest, so that its packet is in time.

    This is the deadline of the packet that its frame is for, minus one step for each later frame of
    the packet: a chain of unit jobs on parallel machines is scheduled without a miss, if that is
    possible at all, by earliest due date with due dates pulled forward along the chain (Brucker,
    Garey, Johnson 1977).
    """
    deadline, further = next_packet(row)
    return deadline - further * step_seconds


def is_text_late(row: Utterance, config: SchedulerConfig) -> bool:
    """Return whether text came back too late for the row's next packet to meet its playback
    deadline, so that a miss is not the machine's fault."""
    deadline = row.playback.runs_out_at
    if row.resumed_at is None or deadline is None:
        return False
    return row.resumed_at > deadline - config.reserve


def start_at(row: Utterance, config: SchedulerConfig) -> float:
    """Return from when a waiting utterance may be prefilled; infinite while text is missing.

    It starts with `min_start_tokens` and text for its silent start, when its text is finished, or
    when it has waited long enough for more. While its listener is still far from the end of the
    previous turn, it rests.
    """
    first_text_at = row.first_text_at
    if first_text_at is None or (row.layout is Layout.FULL_TEXT and not row.finished):
        return inf
    at = first_text_at
    if not row.finished and row.text_tokens < config.min_start_tokens:
        at += config.max_start_wait
    elif not row.finished and row.text_tokens <= row.silent_start:
        at += min(config.max_start_wait, SILENT_WAIT * row.silent_start)
    free_at = row.listener_free_at
    return at if free_at is None else max(at, free_at - row.lead_cap)


def start_key(row: Utterance) -> tuple[bool, float, int]:
    """Return the sort key of a start: first those whose listeners hear them already, by when they
    run out of sound; then the others, by when the listener begins to wait, and by arrival."""
    if row.on_air_elsewhere:
        assert row.playback.runs_out_at is not None, f"{row.id} is on air without a deadline"
        return (False, row.playback.runs_out_at, row.order)
    waits_from = row.opened_at if row.first_text_at is None else row.first_text_at
    free_at = row.listener_free_at
    return (True, waits_from if free_at is None else max(waits_from, free_at), row.order)


def rest_seconds(row: Utterance, config: SchedulerConfig) -> float:
    """Return how far the lead falls below its cap before a parked row comes back, in seconds.

    This is one codec run and one packet: with less, a row would be in and out of the batch at every
    frame.
    """
    frames, playback = config.codec_chunks[-1] * FRAME_SAMPLES, row.playback
    return (frames + playback.packet_samples) / playback.sample_rate


def is_ahead(row: Utterance, now: float) -> bool:
    """Return whether more than the lead cap is made and not yet played: the row can rest."""
    playback = row.playback
    if playback.runs_out_at is None:
        return False  # nothing was sent yet: frames wait for the codec, not for the listener
    made = playback.unsent_samples + row.codec_pending * FRAME_SAMPLES
    return playback.lead(now) + made / playback.sample_rate > row.lead_cap


def resume_at(row: Utterance, config: SchedulerConfig) -> float:
    """Return when a parked row is needed again: well below its cap, never within the reserve."""
    deadline = row.playback.runs_out_at
    assert deadline is not None, f"{row.id} was parked before its first packet"
    return deadline - max(config.reserve, row.lead_cap - rest_seconds(row, config))


def back_at(row: Utterance, config: SchedulerConfig) -> tuple[float, ...]:
    """Return the times at which a row with text may be planned again: a parked row when its lead
    has shrunk, a row without pages when its deadline is near enough to preempt others."""
    back = resume_at(row, config) if row.parked else -inf
    if row.frames < row.frame_limit:
        return (back,)
    return back, max(back, may_preempt_at(row))


def codec_run(
    row: Utterance, pending: int, has_next: bool, now: float, step: float, config: SchedulerConfig
) -> int:
    """Return how many frames of `row` to decode in a step that takes `step` seconds; 0 for none.

    With few frames sound leaves early; with many the codec works less per frame. The next size of
    `codec_chunks` is used only while the next packet is safe without this step's frames. `pending`
    frames will be there when the codec runs; `has_next`: whether another can be made after them. A
    row that is about to wait for text gives its listener everything.
    """
    if pending == 0 or not has_next:
        return pending
    playback = row.playback
    if playback.first_sent_at is None:
        return first_run(row, pending, now, step, config)
    if playback.unsent_samples + pending * FRAME_SAMPLES < playback.packet_samples:
        return 0  # it would fill no packet, so the listener would get nothing
    schedule = config.codec_chunks
    target = schedule[row.codec_runs] if row.codec_runs < len(schedule) else schedule[-1]
    if pending >= target:
        return pending
    deadline = playback.runs_out_at
    assert deadline is not None, f"{row.id} is on air without a deadline"
    ready = now + (1 + target - pending) * step + config.reserve
    return 0 if ready <= deadline else pending


def may_be_late(row: Utterance, now: float, step: float, config: SchedulerConfig) -> bool:
    """Return whether this step's frame may wait for the codec run of the next step, if steps take
    `step` seconds. A codec run over frames made before runs beside the talker."""
    deadline = row.playback.runs_out_at
    return deadline is not None and now + 2 * step + config.reserve <= deadline


def first_run(
    row: Utterance, pending: int, now: float, step: float, config: SchedulerConfig
) -> int:
    """Return how many frames to decode first: as few as leave time to make the second packet.

    One frame is 80 ms of sound, but the next full packet needs two more frames. Where two steps
    take longer than that, sound that left now would be followed by a gap.
    """
    if pending >= max(2, config.codec_chunks[-1]):
        return pending
    playback, size = row.playback, row.playback.packet_samples
    samples = max(0, playback.unsent_samples + pending * FRAME_SAMPLES)
    first = min(samples, size)
    unsent = (samples - first) % size
    missing_frames = -(-(size - unsent) // FRAME_SAMPLES)
    lead = (samples - unsent) / playback.sample_rate - config.delivery_seconds
    deadline = playback.runs_out_at  # of a listener who still hears the previous turn
    if deadline is not None:
        lead += max(0.0, deadline - now - step)
    if pending >= config.codec_chunks[0] and missing_frames * step <= lead:
        return pending
    return 0
