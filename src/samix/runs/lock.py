"""One process per run folder: a second one is told so instead of spoiling the first one's files. A command
that is refused leaves no folder.

filelock holds the lock by the system's own means on every platform, frees it however the process ends, and
does not hand it on to forked children: a loading worker lives on for seconds after its parent was killed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from samix.runs.files import CHECKPOINT, CONFIG, LOCK, METRICS, START, remove_leftovers


class RunInUseError(RuntimeError):
    """The run folder belongs to a process that is alive."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, which carries the number of the process."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; a run needs a folder. Choose another with --out.")
    if (folder / LOCK).is_symlink():
        raise ValueError(f"{folder / LOCK} is a link, and a lock is a file. Remove the link.")
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        holder = (folder / LOCK).read_text().strip() or "unknown"
        raise RunInUseError(
            f"{folder} is in use by process {holder}. Wait for it, or choose another folder with --out."
        ) from error
    except OSError as error:
        raise OSError(f"cannot write in {folder}: {error.strerror}. Choose another with --out.") from error
    try:
        (folder / LOCK).write_text(str(os.getpid()))
        remove_leftovers(folder)
        yield
    finally:
        lock.release()


@contextmanager
def unless_refused(folder: Path) -> Iterator[None]:
    """Removes a new folder again where an error ends the run before its first epoch does."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    except Exception:
        if missing and not any((folder / name).exists() for name in (METRICS, CHECKPOINT)):
            with suppress(OSError):  # what else somebody put there stays
                for name in (CONFIG, START, LOCK):
                    (folder / name).unlink(missing_ok=True)
                for place in missing:
                    place.rmdir()
        raise
