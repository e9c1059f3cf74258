"""samix learns how to mix images: SAMix (arXiv 2111.15454) and the mixups it compares with."""

from samix import _torchvision  # noqa: F401  (must come before anything that imports torchvision)
from samix.evaluate.mixed_accuracy import mixed_accuracy
from samix.methods.mixing import Mixing
from samix.methods.samix import AutoMixed, LearnedMixup, SAMix
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.methods.watch import MixerWatch
from samix.mix import Mix
from samix.mixups import MIXUPS, CutMix, Mixed, MixUp, blend
from samix.nn import ENCODERS, Encoder, Mixer, MixerConfig, build_encoder
from samix.pairing import Pairing, draw_pairing
from samix.version import __version__

__all__ = [
    "ENCODERS",
    "MIXUPS",
    "AutoMixed",
    "CutMix",
    "Encoder",
    "LearnedMixup",
    "Mix",
    "MixUp",
    "Mixed",
    "Mixer",
    "MixerConfig",
    "MixerWatch",
    "Mixing",
    "Objective",
    "Pairing",
    "SAMix",
    "Supervised",
    "__version__",
    "blend",
    "build_encoder",
    "draw_pairing",
    "linear_head",
    "mixed_accuracy",
]
