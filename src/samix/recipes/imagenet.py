"""Table of ImageNet-1k in the PyTorch procedure, 100 epochs.

samix train imagenet-r50/samix --data.root <folder with train/ and val/>
paper, 100 epochs: R-18 plain 70.04, Mixup 69.98, CutMix 68.95, AutoMix 70.50, SAMix 70.85;
R-50 plain 76.83, Mixup 77.12, CutMix 77.17, AutoMix 77.91, SAMix 78.11
"""

from dataclasses import replace

from samix.contract import Plain
from samix.data import Data
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.training import Training
from samix.learned import Adjusting, AutoMixed, LearnedMixup, MixerConfig
from samix.mixups import CutMix, MixUp
from samix.nn.zoo import Network
from samix.recipes.base import Family, as_published, row

BASE = Training(
    data=Data(name="folder", size=224, view="resized-crop", test_resize=256, workers=8),
    encoder=Network(name="resnet18"),
    optimizer=Optimizer(lr=0.1, weight_decay=1e-4),
    machine=Machine(precision="16-mixed"),
    epochs=100,
    batch_size=256,
)
MIXER_OPTIMIZER = replace(BASE.optimizer, mixer_lr=0.1, mixer_min_lr=1e-3)
SAMIX, AUTOMIX = (
    replace(policy, adjusting=Adjusting(prob=0.0), copy=replace(policy.copy, momentum_end=0.99999))
    for policy in map(as_published, (LearnedMixup(eta=0.1, mixer=MixerConfig(dropout=0.1)), AutoMixed()))
)


def _family(encoder: str, cutmix_alpha: float, learned: Optimizer) -> dict[str, Training]:
    base = replace(BASE, encoder=Network(name=encoder))
    return {
        "plain": row(base, Plain()),
        "mixup": row(base, MixUp(alpha=0.2)),
        "cutmix": row(base, CutMix(alpha=cutmix_alpha, box="paper")),
        "automix": row(base, AUTOMIX, learned=learned, clean=1.0),
        "samix": row(base, SAMIX, learned=learned, clean=1.0),
    }


IMAGENET_R18 = Family(
    "ImageNet-1k folder, ResNet-18, 100 epochs; the paper's table; several GPUs.",
    _family("resnet18", 0.2, MIXER_OPTIMIZER),
    published="imagenet-r18",
)
IMAGENET_R50 = Family(
    "ImageNet-1k folder, ResNet-50, 100 epochs; the paper's table; several GPUs.",
    _family("resnet50", 1.0, replace(MIXER_OPTIMIZER, mixer_momentum=0.0)),
    published="imagenet",
)
