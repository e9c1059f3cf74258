"""Has the threads of the `samix` program sleep while they wait for each other.

OpenMP's threads keep their cores busy while they wait, which on a machine with other work takes the core from
the very thread that is waited for: two threads then train many times slower than one (docs/speed.md). OpenMP
reads its setting once, when torch is imported, so this must be imported before torch. It concerns the program
alone: whoever imports samix in a program of their own keeps their own setting.

The same holds of what torch's C++ says on the terminal: the program keeps to errors, since a process that
loses the others would print pages of its stack before our sentence.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def runs_program(first: str, words: Sequence[str]) -> bool:
    """Whether a Python with these `sys.argv[0]` and `sys.orig_argv` runs `samix` or `python -m samix`."""
    if first == "-m":  # while Python still looks for the module
        return "samix" in words[words.index("-m") + 1 :][:1]
    path = Path(first)
    return path.stem == "samix" or path.parts[-2:] == ("samix", "__main__.py")


if runs_program(sys.argv[0], sys.orig_argv):
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
