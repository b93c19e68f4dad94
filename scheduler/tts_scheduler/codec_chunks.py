"""How many frames go through the codec at once.

Few, and sound leaves early; many, and the codec works less per frame. The chunk schedule of the
config says how far to go; its next size is used only while the next packet is safe without this
step's frames.
"""

from __future__ import annotations

from tts_scheduler.config import SchedulerConfig
from tts_scheduler.utterance import Utterance


def codec_run(
    row: Utterance, pending: int, has_next: bool, now: float, step: float, config: SchedulerConfig
) -> int:
    """Frames of `row` to turn into samples in a step that takes `step` seconds; 0 for none.

    `pending` frames will be there when the codec runs; `has_next`: another can be made after it.
    A row that is about to wait for text gives its listener all it has.
    """
    if pending == 0 or not has_next:
        return pending
    playback = row.playback
    if playback.first_sent_at is None:
        return first_run(row, pending, now, step, config)
    if playback.unsent_samples + pending * config.frame_samples < config.packet_samples:
        return 0  # it would fill no packet: no listener has anything of it yet
    schedule = config.codec_chunks
    target = schedule[row.codec_runs] if row.codec_runs < len(schedule) else schedule[-1]
    if pending >= target:
        return pending
    deadline = playback.runs_out_at
    assert deadline is not None, f"{row.id} is on air without a deadline"
    ready = now + (1 + target - pending) * step + config.reserve
    return 0 if ready <= deadline else pending


def first_run(
    row: Utterance, pending: int, now: float, step: float, config: SchedulerConfig
) -> int:
    """Frames of the first run: as few as leave time to make the second packet.

    One frame is 80 ms of sound but the next full packet needs two more frames. Where two steps
    take longer than that, sound that left now would be followed by a gap.
    """
    if pending >= max(2, config.codec_chunks[-1]):
        return pending
    samples = pending * config.frame_samples
    first = min(samples, config.packet_samples)
    full = (samples - first) // config.packet_samples
    unsent = samples - first - full * config.packet_samples
    missing_frames = -(-(config.packet_samples - unsent) // config.frame_samples)
    lead = (samples - unsent) / config.sample_rate
    deadline = row.playback.deadline()  # of a listener who still hears the previous turn
    if deadline is not None:
        lead += max(0.0, deadline - now - step)
    if pending >= config.codec_chunks[0] and missing_frames * step <= lead:
        return pending
    return 0
