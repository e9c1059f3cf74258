"""Table of several methods on ImageNet with MoCo v3's ViT-S: MoCo v2, BYOL, SwAV and MoCo v3, 300 epochs.

samix pretrain imagenet-vit-ssl/moco-v3+samix-c-p --mixup.mixer RUN
"""

from dataclasses import replace

from samix.engine.optim import Optimizer
from samix.methods.ssl import BYOLConfig, MoCoV2, MoCoV3Config, SwAVConfig
from samix.nn.zoo import Network
from samix.recipes.paper import join_cells, read_table
from samix.recipes.ssl_imagenet import IMAGENET
from samix.recipes.ssl_published import mixups, paper_family

TABLE = read_table(
    "tab:imagenet_ssl_vit",
    ("MoCo.V2 (300ep)", "BYOL (300ep)", "SwAV (300ep)", "MoCo.V3 (300ep)"),
    """
    -             72.7  71.4  73.5  73.2
    CutMix        72.6  71.2  73.6  73.0
    i-Mix(2-Mix)  71.8  -     73.3  72.7
    DACL(1-Mix)   72.5  -     -     72.9
    SDMP(3-Mix)   72.9  -     -     73.8
    SAMix-I^P     72.8  72.7  73.6  73.4
    SAMix-C^P     72.9  72.8  73.8  73.6
    """,
)
MIXED = {
    "": "-",
    "+cutmix": "CutMix",
    "+i-mix": "i-Mix(2-Mix)",
    "+dacl": "DACL(1-Mix)",
    "+sdmp": "SDMP(3-Mix)",
    "+samix-i-p": "SAMix-I^P",
    "+samix-c-p": "SAMix-C^P",
}
NAMES = ("moco-v2", "byol", "swav", "moco-v3")
"""In the order of the columns."""

VIT = replace(
    IMAGENET,
    encoder=Network(name="vit-s-moco"),
    optimizer=Optimizer(
        name="adamw",
        lr=2.4e-3,
        weight_decay=0.1,
        decay_all=True,
        warmup_epochs=40.0,
        mixer_lr=1e-3,
        mixer_min_lr=1e-4,
    ),
    augment="byol",
    epochs=300,
    batch_size=4096,
)
TRANSFORMER = {
    "moco-v3": replace(VIT, method=MoCoV3Config(tau=0.2, layers=3, predictor_norm=True)),
    "moco-v2": replace(VIT, method=MoCoV2()),
    "byol": replace(VIT, method=BYOLConfig()),
    "swav": replace(VIT, method=SwAVConfig(freeze=1 / 300)),
}
CELLS = join_cells(
    *(
        TABLE.column(column, {f"{name}{mixup}": row for mixup, row in MIXED.items()})
        for name, column in zip(NAMES, TABLE.columns, strict=True)
    )
)
VIT_SSL = {
    "imagenet-vit-ssl": paper_family(
        "ImageNet-1k, ViT-S with 12 heads, 300 epochs; the paper's table; many GPUs.",
        TRANSFORMER,
        CELLS,
        mixups(),
    )
}
