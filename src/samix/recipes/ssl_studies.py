"""Two studies of the paper's appendix, whose figures have no printed numbers.

samix pretrain stl10-r18-ssl-views/moco-v2+cutmix-same-only    targets of the mixed view, no clean term
samix pretrain tiny-r18-ssl-grid/moco-v2+cutmix-2-mixup-0.2    CutMix between clusters, Mixup within one
"""

from collections.abc import Mapping
from typing import Any

from samix.engine.pretraining import Pretraining
from samix.learned import ClusteredInterIntra
from samix.methods.ssl.base import Terms
from samix.mixups.interintra import InterIntra, Part
from samix.mixups.published import published
from samix.recipes.ssl_base import Preset, PretrainingFamily
from samix.recipes.ssl_published import SMALL
from samix.recipes.ssl_stl10 import STL10

POLICIES = ("mixup", "cutmix", "manifoldmix", "saliencymix", "fmix", "resizemix")
OBJECTIVES = {
    "": Terms(),
    "-same": Terms(same_view=True),
    "-only": Terms(base=0.0),
    "-same-only": Terms(same_view=True, base=0.0),
}
"""Targets from the other view or the mixed one; with the clean term or without."""
VIEWS = {
    f"{policy}{ending}": Preset(published(policy, "ssl"), terms)
    for policy in POLICIES
    for ending, terms in OBJECTIVES.items()
}

PARTS: tuple[Part, ...] = ("mixup", "cutmix")
ALPHAS = (0.2, 1.0, 2.0, 4.0)
CHOICES = [(part, alpha) for part in PARTS for alpha in ALPHAS]
GRID = {
    f"{inter}-{a:g}-{intra}-{b:g}": ClusteredInterIntra(
        policy=InterIntra(inter=inter, alpha_inter=a, intra=intra, alpha_intra=b)
    )
    for inter, a in CHOICES
    for intra, b in CHOICES
}
"""What mixes pairs of two clusters, and what pairs of one."""


def study(about: str, base: Pretraining, variants: Mapping[str, Any]) -> PretrainingFamily:
    """Every variant as a row."""
    rows = ("moco-v2", *(f"moco-v2+{name}" for name in variants))
    return PretrainingFamily(about, {"moco-v2": base}, dict(variants), rows, published="ssl")


STUDIES_SSL = {
    "stl10-r18-ssl-views": study(
        "Same view or cross view, with the clean term or without, on STL-10, ResNet-18; a figure; GPU.",
        STL10,
        VIEWS,
    ),
    "tiny-r18-ssl-grid": study(
        "Mixup or CutMix between and within clusters on Tiny-ImageNet, ResNet-18; a figure; GPU.", SMALL, GRID
    ),
}
