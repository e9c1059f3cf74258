"""The embedded set, no download: `make demo` trains the first four rows.  samix train demo/samix"""

from dataclasses import replace

from samix.contract import Plain
from samix.data import Data
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.training import Training
from samix.learned import AutoMixed, LearnedMixup
from samix.mixups import CutMix, MixUp
from samix.nn.zoo import Network
from samix.recipes.base import Family, row

# One thread: these networks are so small that a second one costs more than it brings (docs/speed.md).
BASE = Training(
    data=Data(name="synthetic", size=32, train_pictures=480, test_pictures=1200),
    encoder=Network(name="small-resnet", width=8),
    optimizer=Optimizer(lr=0.1, weight_decay=5e-4, mixer_lr=0.1),
    machine=Machine(threads=1),
    epochs=120,
    batch_size=48,
    eval_every=10,
    save_every=10,
)
# Masks find the objects sooner: docs/findings.md.
LIVELY = replace(BASE.optimizer, mixer_lr=0.2)
DEMO = Family(
    "Embedded shapes, 480 pictures of 32 px, small ResNet, CPU, about a minute a row.",
    {
        "plain": row(BASE, Plain()),
        "mixup": row(BASE, MixUp(alpha=1.0)),
        "cutmix": row(BASE, CutMix(alpha=1.0)),
        "samix": row(BASE, LearnedMixup(), learned=LIVELY, clean=1.0),
        "automix": row(BASE, AutoMixed(), clean=1.0),
    },
)

DIGITS = Family(
    "scikit-learn's digits (real, 8 px shown at 32), small ResNet, CPU, about a minute a row.",
    {
        name: replace(recipe, data=Data(name="digits", size=32, view="none"), epochs=20)
        for name, recipe in DEMO.rows.items()
    },
)
