"""A classifier in the hands of plain timm: whether timm makes the same network, and its names of weights."""

import torch
from torch import Tensor, nn

from samix.core.seeds import seeded
from samix.nn.from_timm import Built
from samix.nn.frozen import freeze

ONLY_IN_TRAINING = ("pretrained", "drop_path_rate")
"""Options that a trained network does without."""


def built_by_timm(network: nn.Module) -> Built | None:
    """How timm made a network, which may have been changed since; None of one that is not timm's."""
    built = getattr(network, "built", None)
    return built if isinstance(built, Built) else None


def head_name(network: nn.Module) -> str:
    """Where a classifier with this network keeps its last layer: timm's own place, else 'head'."""
    named = getattr(network, "pretrained_cfg", {}).get("classifier")
    return named if isinstance(named, str) else "head"


def whole_weights(network: nn.Module, head: nn.Linear) -> dict[str, Tensor]:
    """The weights of features and linear classifier as one network would name them."""
    last = {f"{head_name(network)}.{name}": weight for name, weight in head.state_dict().items()}
    return network.state_dict() | last


@torch.no_grad()
def as_plain_timm(network: nn.Module, head: nn.Linear, size: int) -> Built | None:
    """How plain timm makes the classifier that these two are; None if it does not make the same one.

    It is made and compared: a network may have been changed after timm built it (another stem), or may have
    no single last layer.
    """
    built = built_by_timm(network)
    if built is None:
        return None
    import timm

    options = {name: value for name, value in built.options.items() if name not in ONLY_IN_TRAINING}
    # On a random stream of its own, so that looking leaves no trace.
    with seeded(0), freeze(nn.Sequential(network, head)) as whole:
        plain = timm.create_model(built.name, num_classes=head.out_features, **options).eval()
        x = torch.randn(2, 3, size, size).to(head.weight)
        try:
            plain.load_state_dict(whole_weights(network, head))
        except RuntimeError:
            return None
        same = torch.allclose(plain.to(x.device)(x), whole(x), rtol=1e-3, atol=1e-4)
    return Built(built.name, options) if same else None
