"""Hand-made mixups: one file (or folder) and one line in `MIXUPS` each.

The command line, the drop-in, the invariant tests, the benchmarks and the report read this table.
"""

from samix._moved import find_moved
from samix.core.mixed import Mixed, Parents, blend
from samix.mixups.alignmix import AlignMix
from samix.mixups.attended import MixupTokenMix, MixupTransMix
from samix.mixups.attentivemix import AttentiveMix
from samix.mixups.augmix import AugMix
from samix.mixups.base import Hints, Policy
from samix.mixups.comixup import CoMixup
from samix.mixups.cutmix import CutMix
from samix.mixups.fmix import FMix
from samix.mixups.gridmix import GridMix
from samix.mixups.guidedmixup import GuidedMixup
from samix.mixups.latent import LatentMixup
from samix.mixups.manifoldmix import ManifoldMix
from samix.mixups.mixup import MixUp
from samix.mixups.patchup import PatchUp
from samix.mixups.puzzlemix import PuzzleMix
from samix.mixups.resizemix import ResizeMix
from samix.mixups.saliencymix import SaliencyMix
from samix.mixups.smmix import SMMix
from samix.mixups.smoothmix import SmoothMix
from samix.mixups.snapmix import SnapMix
from samix.mixups.supermix import SuperMix
from samix.mixups.switch import MixupCutMix, Switch
from samix.mixups.tokenmix import TokenMix
from samix.mixups.transmix import TransMix

MIXUPS: dict[str, type[Policy]] = {
    "mixup": MixUp,
    "cutmix": CutMix,
    "mixup+cutmix": MixupCutMix,
    "fmix": FMix,
    "gridmix": GridMix,
    "smoothmix": SmoothMix,
    "resizemix": ResizeMix,
    "saliencymix": SaliencyMix,
    "attentivemix": AttentiveMix,
    "guidedmixup": GuidedMixup,
    "puzzlemix": PuzzleMix,
    "comixup": CoMixup,
    "supermix": SuperMix,
    "snapmix": SnapMix,
    "augmix": AugMix,
    "manifoldmix": ManifoldMix,
    "patchup": PatchUp,
    "alignmix": AlignMix,
    "transmix": TransMix,
    "tokenmix": TokenMix,
    "smmix": SMMix,
}

__all__ = [
    "MIXUPS",
    "AlignMix",
    "AttentiveMix",
    "AugMix",
    "CoMixup",
    "CutMix",
    "FMix",
    "GridMix",
    "GuidedMixup",
    "Hints",
    "LatentMixup",
    "ManifoldMix",
    "MixUp",
    "Mixed",
    "MixupCutMix",
    "MixupTokenMix",
    "MixupTransMix",
    "Parents",
    "PatchUp",
    "Policy",
    "PuzzleMix",
    "ResizeMix",
    "SMMix",
    "SaliencyMix",
    "SmoothMix",
    "SnapMix",
    "SuperMix",
    "Switch",
    "TokenMix",
    "TransMix",
    "blend",
]


def __getattr__(name: str) -> object:
    return find_moved("mixups", name)
