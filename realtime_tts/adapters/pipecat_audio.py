"""From the server's sample rate to a pipeline's."""

from __future__ import annotations

import numpy as np
import soxr


class Resampler:
    """One stretch of mono s16le audio at another rate, without seams and with nothing lost.

    Pipecat's own resampler forgets its state after a pause of 0.2 s, which clicks, and its oldest
    supported version cannot give back what is still in its filter at the end.
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        self.used = False
        """Whether any audio came."""
        self._stream = (
            None
            if rate_in == rate_out
            else soxr.ResampleStream(rate_in, rate_out, 1, dtype="int16", quality="HQ")
        )

    def push(self, pcm: bytes) -> bytes:
        """What is ready after `pcm`, whole samples; may be empty at first."""
        self.used = self.used or bool(pcm)
        return self._resampled(pcm, last=False) if pcm else b""

    def end(self) -> bytes:
        """The rest; the stretch is over."""
        return self._resampled(b"", last=True)

    def _resampled(self, pcm: bytes, *, last: bool) -> bytes:
        if self._stream is None:
            return pcm
        samples = self._stream.resample_chunk(np.frombuffer(pcm, dtype="<i2"), last=last)
        return bytes(samples.astype("<i2").tobytes())
