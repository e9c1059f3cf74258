"""Table of Tiny-ImageNet and ImageNet without labels: MoCo v2 and what was published around it.

samix pretrain tiny-r18-ssl/moco-v2+samix-i
samix pretrain imagenet-r18-ssl/moco-v2+samix-c
ResNet-50 on ImageNet has the rows of another table as well: ssl_methods.py.
"""

from dataclasses import replace

from samix.data import Data
from samix.engine.pretraining import Pretraining
from samix.methods.ssl import MoCoV2
from samix.nn.zoo import Network
from samix.recipes.paper import read_table
from samix.recipes.ssl_base import PretrainingFamily
from samix.recipes.ssl_published import GROUPS, SMALL, mixups, paper_family

TABLE = read_table(
    "tab:imagenet_ssl",
    ("Tiny / R18", "Tiny / R50", "IN-1k / R18", "IN-1k / R50"),
    """
    MoCo.V2 | -              38.29  42.08  52.85  67.66
    MoCo.V2 | Mixup          41.24  46.61  53.03  68.07
    MoCo.V2 | CutMix         41.62  46.24  52.98  68.28
    MoCo.V2 | SaliencyMix    41.14  46.13  53.06  68.31
    MoCo.V2(C) | PuzzleMix   41.86  46.72  53.46  68.48
    MoCHi | Mixup+latent     41.78  46.55  53.12  68.01
    i-Mix | Mixup+latent     41.61  46.57  53.09  68.10
    UnMix | Mixup+latent     -      -      -      68.60
    WBSIM | Mixup+CutMix     -      -      -      68.40
    MoCo.V2 | SAMix-I        41.97  47.23  53.75  68.76
    MoCo.V2 | SAMix-I^P      43.57  48.10  53.72  68.82
    MoCo.V2(C) | SAMix-C     43.68  47.51  53.93  68.86
    """,
)
ROWS = {
    "moco-v2": "MoCo.V2 | -",
    "moco-v2+mixup": "MoCo.V2 | Mixup",
    "moco-v2+cutmix": "MoCo.V2 | CutMix",
    "moco-v2+saliencymix": "MoCo.V2 | SaliencyMix",
    "moco-v2+puzzlemix-pl": "MoCo.V2(C) | PuzzleMix",
    "moco-v2+mochi": "MoCHi | Mixup+latent",
    "moco-v2+i-mix": "i-Mix | Mixup+latent",
    "moco-v2+un-mix": "UnMix | Mixup+latent",
    "moco-v2+wbsim": "WBSIM | Mixup+CutMix",
    "moco-v2+samix-i": "MoCo.V2 | SAMix-I",
    "moco-v2+samix-i-p": "MoCo.V2 | SAMix-I^P",
    "moco-v2+samix-c": "MoCo.V2(C) | SAMix-C",
}
IMAGENET = replace(
    SMALL,
    data=Data(name="folder", size=224, test_resize=256, workers=8),
    encoder=Network(name="resnet50"),
    method=MoCoV2(norm_groups=GROUPS),
    epochs=200,
)


def make_family(data: str, base: Pretraining, column: str, size: int | None) -> PretrainingFamily:
    """The rows of one column."""
    return paper_family(
        f"{data}, {base.encoder.name}, {base.epochs} epochs; the paper's table; GPU.",
        {"moco-v2": base},
        TABLE.column(column, ROWS),
        mixups(size),
    )


IMAGENET_SSL = {
    "tiny-r18-ssl": make_family("Tiny-ImageNet at 96 px", SMALL, "Tiny / R18", 96),
    "tiny-r50-ssl": make_family(
        "Tiny-ImageNet at 96 px", replace(SMALL, encoder=Network(name="resnet50")), "Tiny / R50", 96
    ),
    "imagenet-r18-ssl": make_family(
        "ImageNet-1k", replace(IMAGENET, encoder=Network(name="resnet18")), "IN-1k / R18", None
    ),
}
