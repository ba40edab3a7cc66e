"""Zeroed memory outside Python's heap, by address, in huge pages where the system has them."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource

HUGE = 2 << 20
Numbers = ctypes.Array[ctypes.c_uint64]


class Block:
    """`size` bytes, all zero. Pages are only taken when they are touched."""

    def __init__(self, size: int) -> None:
        self.size = max(mmap.PAGESIZE, size)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self._map = mmap.mmap(-1, self.size, flags=flags)
        if self.size >= 2 * HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self._hold = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._hold)

    def close(self) -> None:
        """Give the memory back now."""
        del self._hold
        self._map.close()

    def release(self, start: int) -> None:
        """Give back what lies behind the first `start` bytes, as far as the system can take it; it may be zero now."""
        start = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        if start < self.size and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, start, self.size - start)

    def numbers(self) -> Numbers:
        """The block as 64-bit naturals."""
        return (ctypes.c_uint64 * (self.size // 8)).from_address(self.address)

    def bytes(self, start: int, stop: int) -> memoryview:
        """A part of the block, to read from or write to a file."""
        return memoryview(self._map)[start:stop]


def available_mb() -> int:
    """Memory that this process may still take, as the system tells it."""
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                if line.startswith("MemAvailable"):
                    return int(line.split()[1]) // 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**21


def resident_mb() -> float:
    """The memory that this process has now."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * mmap.PAGESIZE / 2**20
    except OSError:
        return peak_mb()


def peak_mb() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
