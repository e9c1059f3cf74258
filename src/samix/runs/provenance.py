"""Where a run's numbers come from: the commit, the versions, and the memory that it took."""

import platform
import subprocess
import sys
from pathlib import Path

import torch

from samix.version import __version__


def versions() -> dict[str, str]:
    """What a result may depend on."""
    return {"samix": __version__, "torch": torch.__version__, "python": platform.python_version()}


def peak_memory_mb() -> float | None:
    """The most memory so far: of the GPU where there is one, else of this process; None if unknown."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def commit() -> str:
    """The commit of the samix checkout that runs, '' where it runs from an installed package."""
    file = Path(__file__)
    # Of an environment inside somebody's repository, git would name their commit.
    if not git("ls-files", "--", file.name, folder=file.parent):
        return ""
    return git("describe", "--always", "--dirty", "--abbrev=10", "--exclude=*", folder=file.parent)


def git(*words: str, folder: Path) -> str:
    """What git says in a folder; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
