"""Pre-training on a CPU and on pictures of one's own.

samix pretrain ssl-demo                        embedded digits, a minute or two
samix pretrain ssl-small/moco-v2+samix-i       CIFAR-10 without labels; ours: results/ssl_small.csv
samix pretrain ssl-folder --data.root FOLDER   any folder of pictures, no labels needed
"""

from dataclasses import replace
from typing import Any

from samix.data import Data
from samix.engine.optim import Optimizer
from samix.engine.pretraining import Pretraining
from samix.learned import (
    ClusteredInterIntra,
    ClusteredPuzzleMix,
    ClusterMixup,
    Clusters,
    InstanceMixup,
    MaskLoss,
    MixerConfig,
)
from samix.methods.ssl import (
    BYOLConfig,
    MethodSettings,
    MoCoV1,
    MoCoV2,
    MoCoV3Config,
    SimCLRConfig,
    SimSiamConfig,
    SwAVConfig,
)
from samix.mixups import CutMix, MixUp
from samix.nn.zoo import Network
from samix.recipes.ssl_base import PretrainingFamily, row_names

MEASURED = (
    *row_names("moco-v2", "mixup", "cutmix", "samix-i", "samix-c"),
    "moco-v1",
    "moco-v3",
    "simclr",
    "byol",
    "simsiam",
    "swav",
)


def small_methods(base: Pretraining, queue: int, hidden: int) -> dict[str, Pretraining]:
    """Every method with heads, queue and momentum for small networks and short runs."""
    configs: dict[str, MethodSettings] = {
        "moco-v2": MoCoV2(queue=queue, hidden=hidden, dim=64, momentum=0.99, tau=0.1, norm_groups=4),
        "moco-v1": MoCoV1(queue=queue, dim=64, momentum=0.99, norm_groups=4),
        "moco-v3": MoCoV3Config(hidden=hidden, dim=64, tau=0.2, momentum=0.99),
        "simclr": SimCLRConfig(hidden=hidden, dim=64, tau=0.2),
        "byol": BYOLConfig(hidden=hidden, dim=64, momentum=0.97),
        "simsiam": SimSiamConfig(dim=hidden, hidden=hidden // 4),
        "swav": SwAVConfig(hidden=hidden, dim=64, prototypes=100, freeze=0.02),
    }
    recipes = {name: replace(base, method=config) for name, config in configs.items()}
    # Codes are soft and change slowly: SwAV learns little at the others' learning rate.
    swav = replace(recipes["swav"], optimizer=replace(base.optimizer, lr=0.4))
    return recipes | {"swav": swav}


def small_mixups(count: int) -> dict[str, Any]:
    """Mixers that wake up within a short run, and pseudo labels of so few pictures."""
    mixer, mask = MixerConfig(init_std=0.1), MaskLoss(beta=0.3, beta_end=0.0, variance=0.0)
    clusters = Clusters(count=count, min_size=5)
    return {
        "mixup": MixUp(alpha=1.0),
        "cutmix": CutMix(alpha=1.0, box="paper"),
        "samix-i": InstanceMixup(mixer=mixer, mask=mask),
        "samix-c": ClusterMixup(mixer=mixer, mask=mask, clusters=clusters),
        "inter-intra": ClusteredInterIntra(clusters=clusters),
        "puzzlemix-pl": ClusteredPuzzleMix(clusters=clusters),
    }


DEMO = Pretraining(
    data=Data(name="digits", size=16),
    encoder=Network(name="small-resnet", width=8),
    optimizer=Optimizer(lr=0.06, weight_decay=5e-4, mixer_lr=0.03),
    epochs=30,
    batch_size=60,
    eval_every=5,
    save_every=10,
)
CIFAR = Pretraining(
    data=Data(name="cifar10", size=16, train_pictures=5000),
    encoder=Network(name="small-resnet", width=16),
    optimizer=Optimizer(lr=0.06, weight_decay=5e-4, mixer_lr=0.03),
    epochs=20,
    batch_size=50,
    eval_every=10,
    save_every=5,
)
FOLDER = Pretraining(
    data=Data(name="pictures", size=96, workers=4),
    encoder=Network(name="resnet18"),
    method=MoCoV2(queue=16384),
    optimizer=Optimizer(lr=0.03, weight_decay=1e-4, mixer_lr=0.03, mixer_min_lr=3e-4),
    augment="moco-v2",
    epochs=200,
    batch_size=256,
    eval_every=10,
    save_every=1,
)

SSL_DEMO = PretrainingFamily(
    "Pre-training on the embedded digits, small ResNet of width 8, 30 epochs; a minute or two on a CPU.",
    small_methods(DEMO, queue=600, hidden=64),
    small_mixups(count=24),
    MEASURED,
)
SSL_SMALL = PretrainingFamily(
    "Pre-training on 5,000 CIFAR-10 pictures at 16 px, small ResNet of width 16, 20 epochs, CPU, minutes.",
    small_methods(CIFAR, queue=500, hidden=256),
    small_mixups(count=50),
    MEASURED,
)
SSL_FOLDER = PretrainingFamily(
    "Pre-training on any folder of pictures at 96 px, ResNet-18, 200 epochs; a GPU, or patience.",
    {"moco-v2": FOLDER},
    {},
    row_names("moco-v2", "samix-i", "samix-c"),
)
