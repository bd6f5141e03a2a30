"""Names for the numpy arrays that the calculations exchange."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

AnyIntegers = NDArray[np.integer[Any]]
"""Integers of any width, signed or unsigned."""

Codes = NDArray[np.uint8]
"""The stored codes of many reports, shape (n, bytes per code)."""
