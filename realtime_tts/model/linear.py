"""Matrix products whose result for a row does not depend on the rows beside it.

BLAS libraries choose another kernel, which rounds differently, when the number of rows changes: a
row alone and the same row in a batch of eight then differ in their last bits, and one sampled code
later in everything. On the CPU in float32 we therefore use oneDNN with weights packed once (its
kernels sum over the inputs in one order for any number of rows, and are the fastest here), check
that claim on the machine at hand for every shape, and pad or go row by row where it fails. Other
devices and precisions use the plain product.

Small products, and all of them where torch has one thread, use weights packed in half precision
where possible, with input, sums and output in float32. For weights that half precision holds
exactly, as it does those of checkpoints stored in bfloat16 or float16, this is the float32 product
with half the memory traffic, and FBGEMM's call costs a tenth of oneDNN's, which is most of the time
of a small product. With AVX-512 its kernels, too, sum over the inputs in one order for any number
of rows. With AVX2 those for one and two rows have an order of their own, so rows are filled up to a
multiple of three; `row_multiple` finds that number on the machine at hand.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

_LARGEST = 1 << 19
"""The most weights for which one thread is as fast as several: FBGEMM uses one."""

_TOLERANCE = 2.0**-25
"""The most that a number below half precision's smallest normal one may lose, as the smallest of
bfloat16 weights do. `_SHARE` of the largest weight is too little to change a float32 sum."""

_SHARE = 2.0**-18

_PROBED_ROWS = (*range(1, 19), 24, 31, 32, 33, 36, 48, 60, 64, 72)
_ROW_MULTIPLES = (1, 2, 3, 4, 6, 8)


def half_serves(weight: Tensor) -> bool:
    """Return whether a float32 weight [N, K] on the CPU should be packed in half precision."""
    if torch.get_num_threads() > 1 and weight.numel() > _LARGEST:
        return False
    lost = (weight.half().float() - weight).abs().max()
    if not lost <= min(_TOLERANCE, _SHARE * float(weight.abs().max())):  # true for NaN, too
        return False
    return row_multiple(weight.shape[1], weight.shape[0]) is not None


def pack_half(weight: Tensor) -> Tensor:
    """Return weight [N, K] in FBGEMM's own layout, which only `half_product` can read."""
    return torch.fbgemm_pack_gemm_matrix_fp16(weight)


def half_product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """Return x [..., K] @ weight.T + bias -> [..., N], all float32, with weights of `pack_half`."""
    return torch.fbgemm_linear_fp16_weight_fp32_activation(x, packed, bias)


@lru_cache(maxsize=1)
def bias_is_optional() -> bool:
    """Return whether this torch computes `half_product` without a bias; some need one."""
    try:
        half_product(torch.zeros(1, 1), pack_half(torch.zeros(1, 1)), None)
    except (RuntimeError, TypeError):
        return False
    return True


@lru_cache(maxsize=256)
def row_multiple(inputs: int, outputs: int) -> int | None:
    """Return the smallest number such that any multiple of it, as the number of rows, gives a row
    the same bits, whatever is beside it.

    None where the product does not exist, is wrong, or depends on the rows in another way. torch
    announces that it will remove these functions some day; without them oneDNN is used.
    """
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(outputs, inputs, generator=generator).half().float()
    rows = torch.randn(_PROBED_ROWS[-1], inputs, generator=generator)
    bias = torch.zeros(outputs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            packed = pack_half(weight)
            whole = half_product(rows, packed, bias)
    except (AttributeError, RuntimeError, TypeError):
        return None
    if not torch.allclose(whole, rows @ weight.t(), rtol=1e-4, atol=1e-4 * inputs**0.5):
        return None
    differing = [
        n for n in _PROBED_ROWS if not torch.equal(half_product(rows[:n], packed, bias), whole[:n])
    ]
    fitting = (one for one in _ROW_MULTIPLES if not any(n % one == 0 for n in differing))
    return next(fitting, None)


# Not a public interface, but called by torch's own compiler; used only if present.
_OPERATORS = (
    "_reorder_linear_weight",
    "_linear_pointwise",
    "_reorder_convolution_weight",
    "_convolution_pointwise",
)
_ROW_FLOORS = (1, 2, 4, 8, 16)


class Linear:
    """y = x @ weight.T + bias for x [..., K], weight [N, K], bias [N].

    `exact_rows`: on the CPU in float32 a row's bits must not depend on the other rows, whatever it
    costs. Without it, they do not where packed weights are available. Packing drops `weight`.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, *, exact_rows: bool = True
    ) -> None:
        self.outputs, self.inputs = weight.shape
        self.bias = bias
        self.weight: Tensor | None = weight
        self._half: Tensor | None = None
        self._row_multiple = 1
        self._packed: Tensor | None = None
        self._row_floor: int | None = 1
        if weight.device.type != "cpu" or weight.dtype is not torch.float32:
            return
        if half_serves(weight):
            self._half, self.weight = pack_half(weight), None
            self._row_multiple = row_multiple(self.inputs, self.outputs) or 1
            if bias is None and not bias_is_optional():
                self.bias = weight.new_zeros(self.outputs)
            return
        if exact_rows:
            threads = torch.get_num_threads()
            self._row_floor = invariant_row_floor(self.inputs, self.outputs, threads)
        if self._row_floor is not None and packing_available():
            self._packed, self.weight = pack(weight), None

    @property
    def itemsize(self) -> int:
        """Bytes per weight in the memory that it is read from."""
        if self._half is not None:
            return 2
        kept = self.weight if self._packed is None else self._packed
        assert kept is not None
        return kept.dtype.itemsize

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.numel() // self.inputs
        if self._half is not None:
            wanted = rows + -rows % self._row_multiple
            y = half_product(self._filled(x, rows, wanted), self._half, self.bias)
        elif self._row_floor is None:
            return self._row_by_row(x)
        elif self._packed is None:
            assert self.weight is not None
            return F.linear(x, self.weight, self.bias)
        else:
            wanted = max(rows, self._row_floor)
            y = packed_product(self._filled(x, rows, wanted), self._packed, self.bias)
        return y if wanted == rows else y[:rows].view(*x.shape[:-1], self.outputs)

    def _filled(self, x: Tensor, rows: int, wanted: int) -> Tensor:
        """Return x if it has `wanted` rows, else [wanted, K] with rows of zeros behind its own."""
        if rows == wanted:
            return x
        block = x.new_zeros(wanted, self.inputs)
        block[:rows] = x.reshape(rows, self.inputs)
        return block

    def _row_by_row(self, x: Tensor) -> Tensor:
        assert self.weight is not None
        rows = x.reshape(-1, 1, self.inputs)
        y = torch.cat([F.linear(row, self.weight, self.bias) for row in rows])
        return y.view(*x.shape[:-1], self.outputs)


def packing_available() -> bool:
    """Return whether this build of torch can pack weights for oneDNN."""
    return torch.backends.mkldnn.is_available() and all(
        hasattr(torch.ops.mkldnn, name) for name in _OPERATORS
    )


def pack(weight: Tensor) -> Tensor:
    """Return weight [N, K] in oneDNN's own layout, which only `packed_product` can read."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)


def packed_product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """Return x [..., K] @ weight.T + bias -> [..., N], with weights of `pack`."""
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


@lru_cache(maxsize=256)
def invariant_row_floor(inputs: int, outputs: int, threads: int) -> int | None:
    """Return the fewest rows from which on a packed product gives each row the same bits.

    It is measured with one random row repeated, with the `threads` that torch has now: some
    processors split the work of two threads differently. None if no floor helps or packing is
    unavailable.
    """
    assert threads == torch.get_num_threads(), "measured with the threads torch has"
    if not packing_available():
        return None
    generator = torch.Generator().manual_seed(0)
    packed = pack(torch.randn(outputs, inputs, generator=generator))
    row = torch.randn(1, inputs, generator=generator)
    wanted = packed_product(row.expand(64, inputs).contiguous(), packed, None)[0]

    def same(rows: int) -> bool:
        y = packed_product(row.expand(rows, inputs).contiguous(), packed, None)
        return bool((y == wanted).all())

    differing = [rows for rows in _PROBED_ROWS if not same(rows)]
    for floor in _ROW_FLOORS:
        if all(rows < floor for rows in differing):
            return floor
    return None
