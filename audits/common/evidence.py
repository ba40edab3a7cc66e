"""Which batches can be believed: the base offset is outside what the CRC covers, and may be wrong without more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fitting(base: NDArray[Any], last: NDArray[Any], before: int, after: NDArray[Any] | int) -> NDArray[Any]:
    """Whether each batch lies between its neighbours. `base` and `last` are its first and last offset, `before` the
    last offset before the first one, `after` the base offset of each one's next."""
    previous = np.empty_like(last)
    previous[:1] = before
    previous[1:] = last[:-1]
    fits: NDArray[Any] = (previous < base) & (base <= last) & (last < after)
    return fits
