"""What wraps a method: hand-made policies, and the mixups that only self-supervised methods have.

A mixup of the second kind is one file, whose settings have `build`, and one line in `AROUND`.
"""

from typing import Any

from samix.methods.around.dacl import DACL, DACLConfig
from samix.methods.around.mixing import Mixing
from samix.methods.around.mochi import MoCHi, MoCHiConfig
from samix.methods.around.sdmp import SDMP, SDMPConfig
from samix.methods.around.self_mixing import SelfMixing

AROUND: dict[str, type[Any]] = {"dacl": DACLConfig, "mochi": MoCHiConfig, "sdmp": SDMPConfig}
"""Settings of mixups that only self-supervised methods have, by the name that `--mixup` takes."""

__all__ = [
    "AROUND",
    "DACL",
    "SDMP",
    "DACLConfig",
    "Mixing",
    "MoCHi",
    "MoCHiConfig",
    "SDMPConfig",
    "SelfMixing",
]
