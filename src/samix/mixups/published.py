"""The setting of every hand-made mixup in the paper's tables: `published("fmix", "cifar100")`.

One alpha per method and data set, in the order of `DATA`; where paper and OpenMixup's lists of the same
accuracies disagree, as resolved there:

- Mixup is .2 on ImageNet, iNaturalist, Places and fine-grained sets (the paper's sentence says 1), 1 on Tiny;
- all but PuzzleMix, Co-Mixup, AugMix and AttentiveMix are .2 for ResNet-18 on ImageNet, Tiny keeps 1;
- Places, which the paper does not name, follows OpenMixup's list.

Beside alpha, the official code's ways are used wherever it differs from the paper's words: the spectrum of
FMix, the box of CutMix that loses a pixel of odd sides (SaliencyMix and TransMix know no other), ResizeMix
with tau ~ Beta(alpha, alpha), PuzzleMix in 2, 4 or 8 blocks a side outside of CIFAR; DeiT and Swin draw
TransMix, TokenMix or Mixup. Everything that is not named here is a policy's own default (so AttentiveMix,
SAMix and Co-Mixup have alpha 2, PuzzleMix and AugMix 1).
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from samix.core.words import suggest
from samix.mixups import (
    MIXUPS,
    AugMix,
    CutMix,
    FMix,
    MixupCutMix,
    MixupTokenMix,
    MixupTransMix,
    Policy,
    PuzzleMix,
    ResizeMix,
    SuperMix,
    TokenMix,
    TransMix,
)

DataSet: TypeAlias = Literal[
    "cifar100", "tiny", "imagenet-r18", "imagenet", "inat", "places", "fine", "rsb-a3", "modern", "ssl"
]
"""Families of the paper's tables: "imagenet" is ResNet-34 and larger, "fine" CUB and Aircraft, "modern" DeiT
and Swin, "ssl" all pre-training."""
DATA: tuple[DataSet, ...] = get_args(DataSet)
SMALL: tuple[DataSet, ...] = ("cifar100", "tiny")

ALPHAS: dict[str, tuple[float, ...]] = {
    # cifar100, tiny, imagenet-r18, imagenet, inat, places, fine, rsb-a3, modern, ssl
    "mixup": (1.0, 1.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 1.0),
    "cutmix": (0.2, 1.0, 0.2, 1.0, 1.0, 0.2, 1.0, 0.2, 0.2, 1.0),
    "manifoldmix": (2.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.5, 0.2, 0.2, 1.0),
    "saliencymix": (0.2, 1.0, 0.2, 1.0, 1.0, 0.2, 0.2, 0.2, 0.2, 1.0),
    "fmix": (0.2, 1.0, 0.2, 1.0, 1.0, 0.2, 0.2, 0.2, 0.2, 1.0),
    "resizemix": (1.0, 1.0, 0.2, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "gridmix": (0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 1.0),
}
"""alpha of each method; those that are not here have one for all data sets, their own."""


def published(name: str, data: DataSet) -> Policy:
    """The policy as the paper's table of this family has it.

    >>> published("mixup", "imagenet").alpha, published("fmix", "tiny").spectrum
    (0.2, 'code')
    """
    if data not in DATA:
        raise ValueError(f"unknown data set {suggest(data, DATA)}")
    if name in WAYS:
        return WAYS[name](data)
    if name not in MIXUPS:
        raise ValueError(f"unknown mixup {suggest(name, MIXUPS)}")
    return MIXUPS[name](**alpha_of(name, data))


def alpha_of(name: str, data: DataSet) -> dict[str, Any]:
    """{"alpha": ...} where the table has one, else nothing."""
    return {"alpha": ALPHAS[name][DATA.index(data)]} if name in ALPHAS else {}


def mixup_cutmix(data: DataSet) -> Policy:
    """alpha of Mixup: .1 in RSB-A3, .8 in DeiT and Swin, 1 in Un-Mix; of CutMix always 1."""
    mixup_alpha = {"rsb-a3": 0.1, "ssl": 1.0}.get(data, 0.8)
    return MixupCutMix(mixup_alpha=mixup_alpha, cutmix_alpha=1.0, box="paper")


def augmix(data: DataSet) -> Policy:
    """Severity 3 for small pictures, 1 for ImageNet's."""
    return AugMix(severity=3.0 if data in SMALL else 1.0)


def supermix(data: DataSet) -> Policy:
    """Maps of 8 x 8 for small pictures, of 16 x 16 with twice the blur for ImageNet's."""
    return SuperMix() if data in SMALL else SuperMix(grid=16, sigma=2.0)


WAYS: dict[str, Callable[[DataSet], Policy]] = {
    "cutmix": lambda data: CutMix(box="paper", **alpha_of("cutmix", data)),
    "mixup+cutmix": mixup_cutmix,
    "fmix": lambda data: FMix(spectrum="code", **alpha_of("fmix", data)),
    "resizemix": lambda data: ResizeMix(from_alpha=True, **alpha_of("resizemix", data)),
    "puzzlemix": lambda data: PuzzleMix(max_exponent=4 if data == "cifar100" else 3),
    "augmix": augmix,
    "supermix": supermix,
    "transmix": lambda data: MixupTransMix() if data == "modern" else TransMix(),
    "tokenmix": lambda data: MixupTokenMix() if data == "modern" else TokenMix(),
}
"""What needs more than an alpha."""
