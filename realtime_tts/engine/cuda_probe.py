"""Lists the NVIDIA GPUs of this machine: JSON on standard output.

This is a script in a process of its own: a process that has asked the driver keeps its library
loaded, a broken driver may never answer, and torch, which could tell the same, takes seconds to
import. It needs only the standard library. The driver counts GPUs as torch does, and both follow
CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_NAME_BYTES = 256


def probe() -> dict[str, Any]:
    """Return `gpus`, with the name and compute capability of each, and `cuda`, the version that the
    driver supports (13020 is 13.2). Without a driver, `gpus` is empty.

    Raises OSError.
    """
    driver = _driver()
    status = _NO_DEVICE if driver is None else driver.cuInit(0)
    if driver is None or status == _NO_DEVICE:
        return {"gpus": [], "cuda": 0}
    _check("cuInit", status)
    count, version = ctypes.c_int(), ctypes.c_int()
    _check("cuDeviceGetCount", driver.cuDeviceGetCount(ctypes.byref(count)))
    _check("cuDriverGetVersion", driver.cuDriverGetVersion(ctypes.byref(version)))
    gpus = [_describe(driver, index) for index in range(count.value)]
    return {"gpus": gpus, "cuda": version.value}


def _driver() -> Any | None:
    for library in _LIBRARIES:
        try:
            return ctypes.CDLL(library)
        except OSError:
            continue
    return None


def _describe(driver: Any, index: int) -> dict[str, Any]:
    device, number = ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(_NAME_BYTES)
    _check("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), index))
    _check("cuDeviceGetName", driver.cuDeviceGetName(name, _NAME_BYTES, device))
    capability = []
    for attribute in (_MAJOR, _MINOR):
        status = driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        _check("cuDeviceGetAttribute", status)
        capability.append(number.value)
    return {"name": name.value.decode(errors="replace"), "capability": capability}


def _check(call: str, status: int) -> None:
    if status != 0:
        raise OSError(f"{call} of the NVIDIA driver failed with error {status}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe()))
