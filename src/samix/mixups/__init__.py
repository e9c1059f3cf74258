"""Hand-made mixups: one file and one line in `MIXUPS` each.

A name in this table is known to the command line, the invariant tests, the benchmarks and the report.
"""

from samix.mixups.base import Hints, Mixup
from samix.mixups.cutmix import CutMix
from samix.mixups.mixed import Mixed, Parents, blend
from samix.mixups.mixup import MixUp

MIXUPS: dict[str, type[Mixup]] = {
    "mixup": MixUp,
    "cutmix": CutMix,
}

__all__ = ["MIXUPS", "CutMix", "Hints", "MixUp", "Mixed", "Mixup", "Parents", "blend"]
