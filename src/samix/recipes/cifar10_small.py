"""CIFAR-10 with few pictures on a CPU: where mixups matter and a suite of three seeds takes hours.

samix train cifar10-small/samix   ours: results/cifar10_small.csv (the paper has no such tables)
samix train cifar10-long/samix    ours: results/cifar10_long.csv
"""

from dataclasses import replace

from samix.contract import Plain
from samix.data import Data
from samix.engine.optim import Optimizer
from samix.engine.training import Training
from samix.learned import AdAutoMixed, AutoMixed, LearnedMixup, MaskLoss
from samix.methods.supervised import Objective
from samix.mixups import CutMix, MixPro, MixUp, SMMix, TLAlign, TokenMix, TransMix
from samix.nn.zoo import Network
from samix.recipes.base import Family, row, speedy

# The clean branch shares the head that is tested, which suits few pictures: docs/findings.md.
BASE = Training(
    data=Data(name="cifar10", train_pictures=250),
    encoder=Network(name="small-resnet", width=16),
    objective=Objective(clean_head=False),
    optimizer=Optimizer(lr=0.05, weight_decay=5e-4, mixer_lr=0.03),
    epochs=150,
    batch_size=25,
    eval_every=150,
    save_every=20,
)
DECOUPLED = replace(BASE, objective=replace(BASE.objective, decoupled=0.1))
MASKS = MaskLoss(variance=0.0)
VIT = replace(
    BASE,
    encoder=Network(name="small-vit", width=12),
    optimizer=Optimizer(name="adamw", lr=1e-3, weight_decay=0.05, warmup_epochs=10.0),
)
"""For policies that need attention; a transformer learns little from so few pictures."""


def main_rows(base: Training, masks: MaskLoss) -> dict[str, Training]:
    """Learned and hand-made mixups with and without the clean branch, so that each gain stands apart."""
    samix = row(base, LearnedMixup(mask=masks), clean=1.0)
    return {
        "plain": row(base, Plain()),
        "mixup": row(base, MixUp(alpha=1.0)),
        "cutmix": row(base, CutMix(alpha=1.0, box="paper")),
        "mixup-clean": row(base, MixUp(alpha=1.0), clean=1.0),
        "mixup2-clean": row(base, MixUp(alpha=2.0), clean=1.0),
        "cutmix-clean": row(base, CutMix(alpha=1.0, box="paper"), clean=1.0),
        "automix": row(base, AutoMixed(), clean=1.0),
        "samix": samix,
        "samix-fast": speedy(samix),
    }


CIFAR10_SMALL = Family(
    "CIFAR-10, 250 balanced pictures, full test set, small ResNet of width 16, CPU, minutes a row.",
    {
        **main_rows(BASE, MASKS),
        "mixup-decoupled": row(DECOUPLED, MixUp(alpha=1.0)),
        "adautomix": row(BASE, AdAutoMixed(), clean=1.0),
        "plain-vit": row(VIT, Plain()),
        "cutmix-vit": row(VIT, CutMix(alpha=1.0, box="paper")),
        "transmix": row(VIT, TransMix(alpha=1.0)),
        "tokenmix": row(VIT, TokenMix()),
        "smmix": row(VIT, SMMix()),
        "tlalign": row(VIT, TLAlign()),
        "mixpro": row(VIT, MixPro()),
    },
)
LONG = replace(BASE, epochs=400, eval_every=400, save_every=50, objective=Objective())
# A stronger mask loss than for 150 epochs, because it fades: masks have more time to drift from lam.
CIFAR10_LONG = Family(
    "The same pictures and network for 400 epochs, where mixing helps most; ten minutes a row.",
    main_rows(LONG, replace(MASKS, beta=5.0, beta_end=0.0)),
)
