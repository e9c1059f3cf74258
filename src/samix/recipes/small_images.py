"""Table of small and of fine-grained pictures: CIFAR-100, Tiny-ImageNet, CUB-200, FGVC-Aircraft.

samix train cifar100-r18/samix
samix train tiny-rx50/puzzlemix
samix train cub200-r18/samix          from ImageNet's weights, which timm downloads
"""

from dataclasses import replace

from samix.data import Data
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.training import Training
from samix.learned import Adjusting, AutoMixed, LearnedMixup, MixerConfig
from samix.mixups.published import DataSet
from samix.nn.zoo import Network
from samix.recipes.base import Family, LearnedRows, as_published, short_name, speedy, table_rows
from samix.recipes.paper import LABELLED, read_table

TABLE = read_table(
    "tab:sl_cifar_tiny_finegrained",
    (
        "CIFAR-100 / R-18",
        "CIFAR-100 / RX-50",
        "CIFAR-100 / WRN-28-8",
        "Tiny-ImageNet / R-18",
        "Tiny-ImageNet / RX-50",
        "CUB-200 / R-18",
        "CUB-200 / RX-50",
        "FGVC-Aircraft / R-18",
        "FGVC-Aircraft / RX-50",
    ),
    """
    Vanilla      78.04  81.09  81.63  61.68  65.04  77.68  83.01  80.23  85.10
    Mixup        79.12  82.10  82.82  63.86  66.36  78.39  84.58  79.52  85.18
    CutMix       78.17  81.67  84.45  65.53  66.47  78.40  85.68  78.84  84.55
    ManifoldMix  80.35  82.88  83.24  64.15  67.30  79.76  86.38  80.68  86.60
    SaliencyMix  79.12  81.53  84.35  64.60  66.55  77.95  83.29  80.02  84.31
    FMix         79.69  81.90  84.21  63.47  65.08  77.28  84.06  79.36  84.85
    PuzzleMix    80.43  82.57  85.02  65.81  66.92  78.63  84.51  80.76  86.23
    ResizeMix    80.01  81.82  84.87  63.74  65.87  78.50  84.77  78.10  84.08
    AutoMix      82.04  83.64  85.16  67.33  70.72  79.87  86.56  81.37  86.69
    SAMix        82.30  84.42  85.50  68.89  72.18  81.11  86.83  82.15  86.80
    """,
)
CUTTING = ("cutmix", "saliencymix", "fmix", "resizemix")
"""Rows that have a stronger weight decay with ResNeXt-50 on CIFAR-100."""

CIFAR = Training(
    data=Data(name="cifar100"),
    encoder=Network(name="resnet18-cifar"),
    optimizer=Optimizer(lr=0.1, weight_decay=1e-4),
    epochs=800,
    batch_size=100,
)
CIFAR_MIXER = replace(CIFAR.optimizer, min_lr=0.05, mixer_lr=0.1, mixer_min_lr=0.05)
WRN = replace(
    CIFAR,
    encoder=Network(name="wrn-28-8"),
    optimizer=Optimizer(lr=0.03, weight_decay=1e-3),
    epochs=400,
)
WRN_MIXER = replace(WRN.optimizer, min_lr=1e-3, mixer_lr=0.03, mixer_min_lr=1e-3, mixer_momentum=0.0)

TINY = Training(
    data=Data(name="tiny-imagenet", size=64, view="resized-crop", workers=4),
    encoder=Network(name="resnet18-cifar"),
    optimizer=Optimizer(lr=0.2, weight_decay=1e-4),
    epochs=400,
    batch_size=100,
)
TINY_MIXER = replace(TINY.optimizer, min_lr=0.05, mixer_lr=0.1, mixer_min_lr=1e-3)

SAMIX = as_published(LearnedMixup(adjusting=Adjusting(prob=0.25)))
AUTOMIX = as_published(
    AutoMixed(adjusting=Adjusting(prob=0.0), mixer=replace(AutoMixed().mixer, encoding="none"))
)

FINE = Training(
    data=Data(name="cub200", size=224, view="resized-crop", min_scale=0.5, test_resize=256, workers=4),
    encoder=Network(name="timm:resnet18.tv_in1k", weights="timm"),
    optimizer=Optimizer(lr=1e-3, weight_decay=5e-4),
    machine=Machine(precision="16-mixed"),
    epochs=200,
    batch_size=16,
)
FINE_MIXER = replace(FINE.optimizer, mixer_lr=0.01, mixer_min_lr=5e-4)
FINE_SAMIX, FINE_AUTOMIX = (
    replace(policy, adjusting=Adjusting(prob=0.0))
    for policy in map(as_published, (LearnedMixup(mixer=MixerConfig(dropout=0.1)), AutoMixed()))
)
FINE_NETWORKS = {"R-18": "timm:resnet18.tv_in1k", "RX-50": "timm:resnext50_32x4d.tv_in1k"}
"""torchvision's weights, which the official configurations start from."""


def make_family(
    column: str, what: str, base: Training, data: DataSet, learned: LearnedRows, fast: bool = False
) -> Family:
    """The rows of one column; `fast` adds SAMix with our speed settings."""
    rows = table_rows(base, data, learned)
    if fast:
        rows["samix-fast"] = speedy(rows["samix"])
    return Family(what, rows, published=data, cells=TABLE.column(column, LABELLED))


def cifar_rx50() -> Family:
    """ResNeXt-50 on CIFAR-100: cutting mixups decay weights five times as much."""
    base = replace(CIFAR, encoder=Network(name="resnext50-cifar"))
    family = make_family(
        "CIFAR-100 / RX-50",
        "CIFAR-100, ResNeXt-50 with CIFAR stem, 800 epochs; the paper's table; GPU.",
        base,
        "cifar100",
        LearnedRows(SAMIX, AUTOMIX, CIFAR_MIXER),
    )
    stronger = replace(base.optimizer, weight_decay=5e-4)
    rows = {name: replace(family.rows[name], optimizer=stronger) for name in CUTTING}
    return family._replace(rows=family.rows | rows)


def fine_family(data: str, printed: str, network: str, momentum_end: float) -> Family:
    """Fine-tuning on a fine-grained set."""
    base = replace(
        FINE,
        data=replace(FINE.data, name=data),
        encoder=replace(FINE.encoder, name=FINE_NETWORKS[network]),
    )
    samix, automix = (
        replace(policy, copy=replace(policy.copy, momentum_end=momentum_end))
        for policy in (FINE_SAMIX, FINE_AUTOMIX)
    )
    return make_family(
        f"{printed} / {network}",
        f"{printed}, {network} with ImageNet weights, 200 epochs; the paper's table; GPU.",
        base,
        "fine",
        LearnedRows(samix, automix, FINE_MIXER),
    )


CIFAR100_R18 = make_family(
    "CIFAR-100 / R-18",
    "CIFAR-100, ResNet-18 with CIFAR stem, 800 epochs; the paper's table; one GPU-day a row.",
    CIFAR,
    "cifar100",
    LearnedRows(SAMIX, AUTOMIX, CIFAR_MIXER),
    fast=True,
)
TINY_R18 = make_family(
    "Tiny-ImageNet / R-18",
    "Tiny-ImageNet at 64 px, ResNet-18 with CIFAR stem, 400 epochs; the paper's table; GPU.",
    TINY,
    "tiny",
    LearnedRows(SAMIX, AUTOMIX, TINY_MIXER),
    fast=True,
)
SMALL_IMAGES = {
    "cifar100-r18": CIFAR100_R18,
    "cifar100-rx50": cifar_rx50(),
    "cifar100-wrn288": make_family(
        "CIFAR-100 / WRN-28-8",
        "CIFAR-100, WRN-28-8, 400 epochs; the paper's table; GPU.",
        WRN,
        "cifar100",
        LearnedRows(SAMIX, AUTOMIX, WRN_MIXER),
    ),
    "tiny-r18": TINY_R18,
    "tiny-rx50": make_family(
        "Tiny-ImageNet / RX-50",
        "Tiny-ImageNet at 64 px, ResNeXt-50 with CIFAR stem, 400 epochs; the paper's table; GPU.",
        replace(TINY, encoder=Network(name="resnext50-cifar")),
        "tiny",
        LearnedRows(SAMIX, AUTOMIX, TINY_MIXER),
    ),
}
FINE_GRAINED = {
    f"{data}-{short_name(network)}": fine_family(data, printed, network, momentum_end)
    for data, printed, momentum_end in (
        ("cub200", "CUB-200", 0.99999),
        ("aircraft", "FGVC-Aircraft", 0.99996),
    )
    for network in FINE_NETWORKS
}
