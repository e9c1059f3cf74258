"""Mixers for photographs, in minutes on a CPU: a trained network stays as it is, only the Mixer learns.

samix train mixer/samix --data.name caltech101                      the shipped Mixer `photos`
samix pretrain ssl-mixer/moco-v2+samix-c --data.name caltech101     the shipped Mixer `photos-c`
samix mixer --data.root PICTURES                                    one for pictures of your own, exported

Masks have the mean lam by construction, and the evidence term tells them where the objects are: the paper's
loss alone does not on so good features (docs/findings.md).
"""

from dataclasses import replace
from typing import Any

from samix.contract import Plain
from samix.engine.optim import Optimizer
from samix.engine.pretraining import Pretraining
from samix.learned import ClusterMixup, Clusters, InstanceMixup, LearnedMixup, MaskLoss, MixerConfig
from samix.methods.ssl import MoCoV2
from samix.nn.zoo import Network
from samix.recipes.base import Family, row
from samix.recipes.few_photos import BASE
from samix.recipes.own_pictures import PICTURES
from samix.recipes.ssl_base import PretrainingFamily

STEPS = 520
"""Steps of four epochs of Caltech-101, within which the Mixer has learned what it learns."""
DATA = replace(PICTURES, size=BASE.data.size)
MASKS = MaskLoss(beta=0.0, variance=0.0, evidence=10.0)
OPTIMIZER = Optimizer(lr=0.02, head_lr=5.0, weight_decay=1e-4, mixer_lr=0.05, clip=1.0)
LENGTH: dict[str, Any] = {"epochs": 4, "batch_size": 36, "min_steps": 4, "eval_every": 20, "save_every": 2}
# All eight stages: heads and Mixer learn, the network's weights can be named instead of stored.
STILL = Network(name="lite0", weights="lite0", frozen=8, freeze_norm=True)

STEADY = replace(BASE.objective, mix_until=1.0)
TRAINED = replace(BASE, data=DATA, encoder=STILL, objective=STEADY, optimizer=OPTIMIZER, **LENGTH)
MIXER = Family(
    "A Mixer for photographs with labels at 96 px, trained EfficientNet-Lite0 kept still; minutes on a CPU.",
    {
        "plain": row(TRAINED, Plain()),
        "samix": row(TRAINED, LearnedMixup(mixer=MixerConfig(balanced=True), mask=MASKS), clean=1.0),
    },
)

PRETRAINED = Pretraining(
    data=replace(DATA, name="pictures", shrink=None),
    encoder=STILL,
    method=MoCoV2(queue=2048, momentum=0.99),
    optimizer=OPTIMIZER,
    augment="moco-v2",
    **LENGTH,
)
BALANCED = MixerConfig(balanced=True, dropout=0.1)
SSL_MIXER = PretrainingFamily(
    "The same without labels: only the projector and the Mixer learn; minutes on a CPU.",
    {"moco-v2": PRETRAINED},
    {
        "samix-i": InstanceMixup(mixer=BALANCED, mask=MASKS),
        "samix-c": ClusterMixup(mixer=BALANCED, mask=MASKS, clusters=Clusters(count=100, min_size=10)),
    },
    ("moco-v2+samix-i", "moco-v2+samix-c"),
)
