"""Self-supervised methods, one algorithm each; a new one is one file and one line in `METHODS`."""

from typing import Any

from samix.methods.ssl.base import Branch, MethodSettings, SelfSupervised, Terms
from samix.methods.ssl.byol import BYOL, BYOLConfig
from samix.methods.ssl.moco import MoCo, MoCoV1, MoCoV2
from samix.methods.ssl.mocov3 import MoCoV3, MoCoV3Config
from samix.methods.ssl.simclr import SimCLR, SimCLRConfig
from samix.methods.ssl.simsiam import SimSiam, SimSiamConfig
from samix.methods.ssl.swav import SwAV, SwAVConfig

METHODS: dict[str, type[Any]] = {
    "simclr": SimCLRConfig,
    "moco-v1": MoCoV1,
    "moco-v2": MoCoV2,
    "moco-v3": MoCoV3Config,
    "byol": BYOLConfig,
    "simsiam": SimSiamConfig,
    "swav": SwAVConfig,
}
"""Settings of the methods, which build them, by the name that `--method` takes."""

__all__ = [
    "BYOL",
    "METHODS",
    "BYOLConfig",
    "Branch",
    "MethodSettings",
    "MoCo",
    "MoCoV1",
    "MoCoV2",
    "MoCoV3",
    "MoCoV3Config",
    "SelfSupervised",
    "SimCLR",
    "SimCLRConfig",
    "SimSiam",
    "SimSiamConfig",
    "SwAV",
    "SwAVConfig",
    "Terms",
]
