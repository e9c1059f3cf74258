"""The packages of the extra `train`: training engine and commands need them, the drop-in does not."""

from collections.abc import Iterator
from contextlib import contextmanager

TRAIN = ("jsonargparse", "lightning_fabric", "matplotlib", "rich", "scipy", "sklearn")
"""Packages that `import samix`, `Mix`, `load_mixer` and `SAMix.wrap` do without."""


@contextmanager
def needs_train(what: str) -> Iterator[None]:
    """Says what to install where something inside does not find a package of the extra `train`."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in TRAIN:
            raise
        raise ModuleNotFoundError(
            f"{what} needs {package}, which is not installed: pip install 'samix[train]' "
            "(from a clone: pip install '.[train]').",
            name=package,
        ) from error
