"""Networks: encoders, the Mixer, momentum copies."""

from samix.nn.encoder import ENCODERS, Encoder, build_encoder
from samix.nn.mixer import Mixer, MixerConfig
from samix.nn.momentum import momentum_copy, momentum_update

__all__ = [
    "ENCODERS",
    "Encoder",
    "Mixer",
    "MixerConfig",
    "build_encoder",
    "momentum_copy",
    "momentum_update",
]
