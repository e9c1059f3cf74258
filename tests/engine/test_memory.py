"""Freed memory is kept: a large block that is used again need not be faulted in again."""

import subprocess
import sys

import pytest

PROBE = """
import resource, torch
from samix.engine.memory import keep_freed_memory
kept = keep_freed_memory() if {keep} else True
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(48 * 2**18)  # 48 MB: above the largest size that glibc learns to keep by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(int(kept), min(faults() for _ in range(6)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
@pytest.mark.parametrize("keep", [True, False])
def test_value_freed_blocks_are_used_again(keep):
    out = subprocess.run(
        [sys.executable, "-c", PROBE.format(keep=keep)], capture_output=True, text=True, check=True
    ).stdout.split()
    if out[0] == "0":
        pytest.skip("this C library has no mallopt")
    assert (int(out[1]) < 100) == keep
