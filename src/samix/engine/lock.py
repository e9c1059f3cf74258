"""One process per run folder: a second one is told so instead of spoiling the first one's files."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

HELD: set[TextIO] = set()
"""The open lock files of this process."""


class RunInUseError(RuntimeError):
    """The run folder belongs to a process that is alive."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; the system frees it when the process ends, however it ends."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; a run needs a folder. Choose another with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+")
    except OSError as error:
        raise OSError(f"cannot write in {folder}: {error.strerror}. Choose another with --out.") from error
    with lock as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            raise RunInUseError(
                f"{folder} is in use by process {handle.read().strip() or 'unknown'}. "
                "Wait for it, or choose another folder with --out."
            ) from error
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        HELD.add(handle)
        try:
            yield
        finally:
            HELD.discard(handle)


def let_go() -> None:
    """Closes the lock files that a forked child, such as a loading worker, has inherited.

    Such a child lives on for seconds after its parent was killed, and would keep the folder locked.
    """
    for handle in HELD:
        handle.close()
    HELD.clear()


os.register_at_fork(after_in_child=let_go)
