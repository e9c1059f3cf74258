"""Tables of CIFAR-100 and Tiny-ImageNet, ResNet-18 with CIFAR stem.

samix train cifar100-r18/samix
paper, 800 epochs: plain 78.04, Mixup 79.12, CutMix 78.17, AutoMix 82.04, SAMix 82.30
samix train tiny-r18/samix
paper, 400 epochs: plain 61.68, Mixup 63.86, CutMix 65.53, AutoMix 67.33, SAMix 68.89
"""

from dataclasses import replace

from samix.contract import Plain
from samix.data import Data
from samix.engine.optim import Optimizer
from samix.engine.training import Training
from samix.learned import Adjusting, AutoMixed, LearnedMixup
from samix.mixups import CutMix, MixUp
from samix.nn.zoo import Network
from samix.recipes.base import Family, as_published, row, speedy

CIFAR = Training(
    data=Data(name="cifar100"),
    encoder=Network(name="resnet18-cifar"),
    optimizer=Optimizer(lr=0.1, weight_decay=1e-4),
    epochs=800,
    batch_size=100,
)
CIFAR_MIXER = replace(CIFAR.optimizer, min_lr=0.05, mixer_lr=0.1, mixer_min_lr=0.05)

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

CIFAR_SAMIX = row(CIFAR, SAMIX, learned=CIFAR_MIXER, clean=1.0)
TINY_SAMIX = row(TINY, SAMIX, learned=TINY_MIXER, clean=1.0)

CIFAR100_R18 = Family(
    "CIFAR-100, ResNet-18 with CIFAR stem, 800 epochs; the paper's table; one GPU-day a row.",
    {
        "plain": row(CIFAR, Plain()),
        "mixup": row(CIFAR, MixUp(alpha=1.0)),
        "cutmix": row(CIFAR, CutMix(alpha=0.2, box="paper")),
        "automix": row(CIFAR, AUTOMIX, learned=CIFAR_MIXER, clean=1.0),
        "samix": CIFAR_SAMIX,
        "samix-fast": speedy(CIFAR_SAMIX),
    },
    published="cifar100",
)
TINY_R18 = Family(
    "Tiny-ImageNet at 64 px, ResNet-18 with CIFAR stem, 400 epochs; the paper's table; GPU.",
    {
        "plain": row(TINY, Plain()),
        "mixup": row(TINY, MixUp(alpha=1.0)),
        "cutmix": row(TINY, CutMix(alpha=1.0, box="paper")),
        "automix": row(TINY, AUTOMIX, learned=TINY_MIXER, clean=1.0),
        "samix": TINY_SAMIX,
        "samix-fast": speedy(TINY_SAMIX),
    },
    published="tiny",
)
