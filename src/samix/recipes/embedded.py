"""The embedded set, no download: `make demo` trains four of its rows.  samix train demo/samix"""

from dataclasses import replace

from samix.contract import Plain
from samix.data import Data
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.training import Training
from samix.learned import AdAutoMixed, Adjusting, AutoMixed, LearnedMixup, MaskLoss, MixerConfig
from samix.methods.supervised import Objective
from samix.mixups import CutMix, MixUp
from samix.nn.zoo import Network
from samix.recipes.base import Family, row

# One thread: these networks are so small that a second one costs more than it brings (docs/speed.md).
# Pictures of subset 1: settings were chosen on others (docs/appendix_settings.md).
BASE = Training(
    data=Data(name="synthetic", size=32, train_pictures=480, test_pictures=1200, subset_seed=1),
    encoder=Network(name="small-resnet", width=8),
    optimizer=Optimizer(lr=0.1, weight_decay=5e-4, mixer_lr=0.1),
    # The clean branch shares the head that is tested, which suits few pictures: docs/findings.md.
    objective=Objective(clean_head=False),
    machine=Machine(threads=1),
    epochs=80,
    batch_size=48,
    eval_every=10,
    save_every=10,
)
LIVELY = replace(BASE.optimizer, mixer_lr=0.2)
# Masks that find the objects: docs/findings.md. They have the mean lam as they are.
FINDING = LearnedMixup(
    alpha=1.0,  # as in the rows beside it
    mixer=MixerConfig(balanced=True),
    mask=MaskLoss(beta=0.0, evidence=5.0, zoom=1.0),
    adjusting=Adjusting(prob=0.0, warmup=0.4),  # at first there is nothing to see in the copy's maps
)
DEMO = Family(
    "Embedded shapes, 480 pictures of 32 px, small ResNet, CPU, one to three minutes a row.",
    {
        "plain": row(BASE, Plain()),
        "mixup": row(BASE, MixUp(alpha=1.0)),
        "cutmix": row(BASE, CutMix(alpha=1.0, box="paper")),
        "mixup-clean": row(BASE, MixUp(alpha=1.0), clean=1.0),
        "cutmix-clean": row(BASE, CutMix(alpha=1.0, box="paper"), clean=1.0),
        "samix": row(BASE, FINDING, learned=LIVELY, clean=1.0),
        "automix": row(BASE, AutoMixed(), clean=1.0),
        "adautomix": row(BASE, AdAutoMixed(), clean=1.0),
    },
)

TWO_HEADS = replace(BASE, data=Data(name="digits", size=32, view="none"), objective=Objective(), epochs=20)
DIGITS = Family(
    "scikit-learn's digits (real, 8 px shown at 32), small ResNet, CPU, about a minute a row.",
    {
        "plain": row(TWO_HEADS, Plain()),
        "mixup": row(TWO_HEADS, MixUp(alpha=1.0)),
        "cutmix": row(TWO_HEADS, CutMix(alpha=1.0, box="paper")),
        "samix": row(TWO_HEADS, LearnedMixup(), learned=LIVELY, clean=1.0),
        "automix": row(TWO_HEADS, AutoMixed(), clean=1.0),
    },
)
