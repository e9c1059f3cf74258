"""The paper's self-supervised tables: Tiny-ImageNet with ResNet-18, ImageNet with ResNet-50 and ViT-S; GPUs.

samix pretrain tiny-r18-ssl/moco-v2+samix-i
samix pretrain imagenet-r50-ssl/moco-v2+samix-c
samix pretrain imagenet-vit-ssl/moco-v3
Settings and their sources: docs/self_supervised.md. Linear evaluation: samix linear RUN.
"""

from dataclasses import replace

from samix import mixups
from samix.data import Data
from samix.engine.optim import Optimizer
from samix.engine.pretraining import Pretraining
from samix.learned.samix_c import ClusterMixup
from samix.learned.samix_i import InstanceMixup
from samix.methods.ssl import (
    BYOLConfig,
    MoCoV1,
    MoCoV2,
    MoCoV3Config,
    SimCLRConfig,
    SimSiamConfig,
    SwAVConfig,
)
from samix.mixups.published import published
from samix.nn.zoo import Network
from samix.recipes.base import as_published
from samix.recipes.ssl_base import PretrainingFamily, row_names

MOCO = Optimizer(lr=0.03, weight_decay=1e-4, mixer_lr=0.03, mixer_min_lr=3e-4)
MIXUPS = {name: published(name, "ssl") for name in mixups.MIXUPS} | {
    "samix-i": as_published(InstanceMixup()),
    "samix-c": as_published(ClusterMixup()),
}
MIXED = row_names("moco-v2", "mixup", "cutmix", "samix-i", "samix-c")

TINY = Pretraining(
    data=Data(name="tiny-imagenet", size=96, workers=4),
    encoder=Network(name="resnet18"),
    method=MoCoV2(queue=16384),
    optimizer=MOCO,
    augment="moco-v2",
    epochs=400,
    batch_size=256,
    eval_every=10,
    save_every=5,
)
IMAGENET = replace(
    TINY,
    data=Data(name="folder", size=224, test_resize=256, workers=8),
    encoder=Network(name="resnet50"),
    method=MoCoV2(),
    epochs=200,
)
LARS = replace(MOCO, name="lars", lr=4.8, weight_decay=1e-6, warmup_epochs=10.0)
RESNET = {
    "moco-v2": IMAGENET,
    "moco-v1": replace(IMAGENET, method=MoCoV1(), augment="moco-v1"),
    "simclr": replace(
        IMAGENET, method=SimCLRConfig(), augment="simclr", optimizer=replace(LARS, lr=0.6), batch_size=512
    ),
    "byol": replace(
        IMAGENET, method=BYOLConfig(), augment="byol", optimizer=LARS, epochs=300, batch_size=4096
    ),
    "simsiam": replace(IMAGENET, method=SimSiamConfig(), augment="simsiam", optimizer=replace(MOCO, lr=0.05)),
    "swav": replace(
        IMAGENET, method=SwAVConfig(), augment="swav", optimizer=replace(LARS, min_lr=4.8e-3), batch_size=4096
    ),
    "moco-v3": replace(
        IMAGENET, method=MoCoV3Config(), augment="moco-v3", optimizer=LARS, epochs=300, batch_size=4096
    ),
}
VIT = replace(
    IMAGENET,
    encoder=Network(name="vit-s-moco"),
    optimizer=Optimizer(
        name="adamw", lr=2.4e-3, weight_decay=0.1, warmup_epochs=40.0, mixer_lr=1e-3, mixer_min_lr=1e-4
    ),
    augment="byol",
    epochs=300,
    batch_size=4096,
)
TRANSFORMER = {
    "moco-v3": replace(VIT, method=MoCoV3Config(tau=0.2, layers=3, predictor_norm=True)),
    "moco-v2": replace(VIT, method=MoCoV2()),
    "byol": replace(VIT, method=BYOLConfig()),
    "swav": replace(VIT, method=SwAVConfig()),
}

TINY_R18_SSL = PretrainingFamily(
    "Tiny-ImageNet at 96 px, ResNet-18, 400 epochs; the paper's table; GPU.",
    {"moco-v2": TINY},
    MIXUPS,
    MIXED,
)
IMAGENET_R50_SSL = PretrainingFamily(
    "ImageNet, ResNet-50, 200 or 300 epochs; the paper's tables; several GPUs.",
    RESNET,
    MIXUPS,
    (*MIXED, *list(RESNET)[1:]),
)
IMAGENET_VIT_SSL = PretrainingFamily(
    "ImageNet, ViT-S, 300 epochs; the paper's table; many GPUs.",
    TRANSFORMER,
    MIXUPS,
    tuple(TRANSFORMER),
)
