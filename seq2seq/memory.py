"""Freed memory that is kept for the next step, where the C library would give it back to the system each time."""

import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # mallopt(3)


def keep_freed_memory() -> bool:
    """Tell glibc to hand out large blocks from the heap, and to keep the heap at its size; whether it took it.

    A step of training or translating frees and asks for the same tensors again and again. By default glibc maps
    blocks of some megabytes anew each time, and the system has to clear every page of them, which costs more than the
    arithmetic on them. It holds for the whole process, which keeps what it once needed: its peak is as before, and it
    stays there. With another C library or allocator nothing changes.
    """
    if os.name != "posix":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))
