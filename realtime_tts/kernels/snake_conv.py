"""The codec's causal convolutions of few channels, fused with the operations after them."""

from __future__ import annotations

from torch import Tensor

from realtime_tts.kernels.codec_past import Past, Snake
from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.kernels.snake_unfold import snake_beta, unfold


@Kernel
def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    past: Past | None,
    *,
    count: int = 1,
    dilation: int = 1,
    residual: Tensor | None = None,
    snake: Snake | None = None,
    raw: bool = True,
) -> tuple[Tensor | None, Tensor | None]:
    """Convolve x [B, L, C] float causally, with weight [count * C, N] float and bias [N] float32.

    y = product + bias + residual, [B, L, N] float. Returns y if `raw`, and snake(y) if there is a
    `snake`; else None. The past must not be longer than L.
    """
    rows, steps, _ = x.shape
    matrix = unfold.plain(x, past, count=count, dilation=dilation)
    y = (matrix.float() @ weight.float() + bias).view(rows, steps, -1)
    if residual is not None:
        y = y + residual
    active = None if snake is None else snake_beta(y, snake).to(x.dtype)
    return (y.to(x.dtype) if raw else None), active


@Kernel
def residual_unit(
    x: Tensor,
    active: Tensor,
    wide: tuple[Tensor, Tensor],
    middle: Snake,
    point: tuple[Tensor, Tensor],
    past: Past,
    *,
    dilation: int,
    after: Snake,
    raw: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """Return y = x + point(middle(wide(active))), if `raw` (else None), and after(y): all [B, L, C]
    float.

    x is raw and `active` is activated, both [B, L, C] float. `wide` is a weight [7 * C, C] float
    and its bias [C] float32, `point` [C, C] float and its bias. The past must not be longer than L.
    """
    count = wide[0].shape[0] // x.shape[2]
    _, hidden = conv.plain(
        active, *wide, past, count=count, dilation=dilation, snake=middle, raw=False
    )
    assert hidden is not None
    y, activated = conv.plain(hidden, *point, None, residual=x, snake=after, raw=raw)
    assert activated is not None
    return y, activated
