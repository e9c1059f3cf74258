"""Memory of CPU training: keep what a step frees, because the next step asks for the same again.

glibc gives large blocks back to the system when they are freed, so every step would fault some of its
activations in anew. That costs SAMix more than plain training: it has three graphs alive at once.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory(below: int = 2**30) -> bool:
    """Lets malloc keep freed blocks of up to `below` bytes; False where the C library has no such setting."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, below)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))
