"""Table of several methods on ImageNet, ResNet-50: SimCLR, MoCo v1, BYOL, SwAV, SimSiam, MoCo v3, each with
hand-made mixups and with Mixers that were trained before.

samix pretrain imagenet-r50-ssl/byol+samix-c-p --mixup.mixer RUN
samix pretrain imagenet-r50-ssl-100/moco-v2+samix-c     trains that Mixer
MoCo v2, whose rows stand in another table (ssl_imagenet.py), is here as well.
"""

from dataclasses import replace

from samix.methods.ssl import BYOLConfig, MoCoV1, MoCoV3Config, SimCLRConfig, SimSiamConfig, SwAVConfig
from samix.recipes.paper import join_cells, read_table
from samix.recipes.ssl_base import PretrainingFamily, row_names
from samix.recipes.ssl_imagenet import IMAGENET, ROWS
from samix.recipes.ssl_imagenet import TABLE as MOCO_TABLE
from samix.recipes.ssl_published import GROUPS, MOCO, SAMIX_C, SAMIX_I, SOURCE, mixups, paper_family

TABLE = read_table(
    "tab:imagenet_ssl_extend",
    (
        "SimCLR (200ep)",
        "MoCo.V1 (200ep)",
        "BYOL (300ep)",
        "SwAV (200ep)",
        "SimSiam (200ep)",
        "MoCo.V3 (300ep)",
    ),
    """
    -             61.6  61.0  72.3  69.1  70.0  72.8
    Mixup         61.6  61.2  72.4  69.2  70.1  72.8
    CutMix        61.8  61.5  72.5  69.5  70.3  73.0
    i-Mix(2-Mix)  61.7  61.4  -     69.4  -     72.8
    SDMP(3-Mix)   62.3  61.7  -     -     -     73.5
    SAMix-I^P     62.2  61.7  72.6  69.8  70.4  73.2
    SAMix-C^P     62.4  61.9  72.8  69.9  70.5  73.4
    """,
)
MIXED = {
    "": "-",
    "+mixup": "Mixup",
    "+cutmix": "CutMix",
    "+i-mix": "i-Mix(2-Mix)",
    "+sdmp": "SDMP(3-Mix)",
    "+samix-i-p": "SAMix-I^P",
    "+samix-c-p": "SAMix-C^P",
}
NAMES = ("simclr", "moco-v1", "byol", "swav", "simsiam", "moco-v3")
"""In the order of the columns."""

LARS = replace(MOCO, name="lars", lr=4.8, weight_decay=1e-6, warmup_epochs=10.0)
RESNET = {
    "moco-v2": IMAGENET,
    "moco-v1": replace(IMAGENET, method=MoCoV1(norm_groups=GROUPS), augment="moco-v1"),
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
CELLS = join_cells(
    MOCO_TABLE.column("IN-1k / R50", ROWS),
    *(
        TABLE.column(column, {f"{name}{mixup}": row for mixup, row in MIXED.items()})
        for name, column in zip(NAMES, TABLE.columns, strict=True)
    ),
)
METHODS_SSL = {
    "imagenet-r50-ssl": paper_family(
        "ImageNet-1k, ResNet-50, 200 or 300 epochs; the paper's tables; several GPUs.",
        RESNET,
        CELLS,
        mixups(),
    ),
    SOURCE: PretrainingFamily(
        "ImageNet-1k, ResNet-50, 100 epochs: the Mixers of the rows -P; several GPUs.",
        {"moco-v2": replace(IMAGENET, epochs=100)},
        {"samix-i": SAMIX_I, "samix-c": SAMIX_C},
        row_names("moco-v2", "samix-i", "samix-c"),
        published="ssl",
    ),
}
