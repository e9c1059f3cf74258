"""Table of STL-10 without labels: MoCo v2 and SwAV, ResNet-18 and ResNet-50, 400 and 800 epochs.

samix pretrain stl10-r18-ssl/moco-v2+samix-i
samix pretrain stl10-r50-ssl-800/moco-v2+samix-c
The 100,000 pictures without labels are learned from; `samix linear RUN` takes the labelled ones.
"""

from dataclasses import replace

from samix.engine.pretraining import Pretraining
from samix.methods.ssl import SwAVConfig
from samix.nn.zoo import Network
from samix.recipes.paper import read_table
from samix.recipes.ssl_base import PretrainingFamily
from samix.recipes.ssl_published import MOCO, SMALL, mixups, paper_family

TABLE = read_table(
    "tab:stl_ssl",
    ("R18 / 400ep", "R18 / 800ep", "R50 / 400ep", "R50 / 800ep"),
    """
    MoCo.V2 | -               81.50  85.64  84.89  89.68
    MoCo.V2 | Mixup           84.51  87.93  88.24  92.20
    MoCo.V2 | ManifoldMix     84.17  87.70  88.06  91.65
    MoCo.V2 | CutMix          84.28  87.60  87.51  90.81
    MoCo.V2 | SaliencyMix     84.33  87.27  87.35  90.77
    MoCo.V2 | FMix            84.43  87.68  88.14  91.56
    MoCo.V2 | ResizeMix       83.88  87.25  86.88  90.83
    MoCo.V2 | SAMix-I         85.44  88.58  88.87  92.41
    SwAV (C) | -              81.10  85.56  84.35  88.79
    MoCo.V2(C) | Inter-Intra  84.89  87.85  88.33  92.24
    MoCo.V2(C) | PuzzleMix    84.98  88.07  88.40  91.98
    MoCo.V2(C) | SAMix-C      85.60  88.63  88.91  92.45
    """,
)
ROWS = {
    "moco-v2": "MoCo.V2 | -",
    "moco-v2+mixup": "MoCo.V2 | Mixup",
    "moco-v2+manifoldmix": "MoCo.V2 | ManifoldMix",
    "moco-v2+cutmix": "MoCo.V2 | CutMix",
    "moco-v2+saliencymix": "MoCo.V2 | SaliencyMix",
    "moco-v2+fmix": "MoCo.V2 | FMix",
    "moco-v2+resizemix": "MoCo.V2 | ResizeMix",
    "moco-v2+samix-i": "MoCo.V2 | SAMix-I",
    "swav": "SwAV (C) | -",
    "moco-v2+inter-intra": "MoCo.V2(C) | Inter-Intra",
    "moco-v2+puzzlemix-pl": "MoCo.V2(C) | PuzzleMix",
    "moco-v2+samix-c": "MoCo.V2(C) | SAMix-C",
}
STL10 = replace(SMALL, data=replace(SMALL.data, name="stl10-unlabelled"))


def swav(base: Pretraining) -> Pretraining:
    """SwAV as its own code has it for a batch of 256: a queue from epoch 15 on, prototypes fixed for one."""
    method = SwAVConfig(stored=3840, store_from=15 / base.epochs, freeze=1 / base.epochs)
    optimizer = replace(MOCO, name="lars", lr=0.6, min_lr=6e-4, weight_decay=1e-6)
    return replace(base, method=method, optimizer=optimizer, augment="swav")


def make_family(network: str, epochs: int) -> PretrainingFamily:
    """The rows of one column."""
    base = replace(STL10, encoder=Network(name=network), epochs=epochs)
    column = f"{network.replace('resnet', 'R')} / {epochs}ep"
    return paper_family(
        f"STL-10 without labels at 96 px, {network}, {epochs} epochs; the paper's table; GPU.",
        {"moco-v2": base, "swav": swav(base)},
        TABLE.column(column, ROWS),
        mixups(size=96),
    )


STL10_SSL = {
    "stl10-r18-ssl": make_family("resnet18", 400),
    "stl10-r18-ssl-800": make_family("resnet18", 800),
    "stl10-r50-ssl": make_family("resnet50", 400),
    "stl10-r50-ssl-800": make_family("resnet50", 800),
}
