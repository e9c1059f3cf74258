"""timm's networks without their classifier.

timm and the torchvision it imports take longer to import than torch, so they come with the first network
that is built: who mixes for a network of their own never waits for them.
"""

from typing import Any

from torch import nn


def timm_network(name: str, **options: Any) -> nn.Module:
    """A network of timm, images -> features."""
    import timm

    return timm.create_model(name, num_classes=0, **options)
