"""Networks: encoders, their layers and slow copies, heads, queues."""

from samix._moved import find_moved
from samix.nn.encoder import Encoder, momentum_copy, momentum_update, read_layer
from samix.nn.frozen import freeze, run_frozen
from samix.nn.zoo import ENCODERS, Network, build_encoder

__all__ = [
    "ENCODERS",
    "Encoder",
    "Network",
    "build_encoder",
    "freeze",
    "momentum_copy",
    "momentum_update",
    "read_layer",
    "run_frozen",
]


def __getattr__(name: str) -> object:
    return find_moved("nn", name)
