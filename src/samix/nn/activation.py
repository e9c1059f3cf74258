"""Class activation maps: where in a network's last map the evidence for a label stands.

    CAM(h, w) = sum_c w_c A_c(h, w),   w = d v_y / d A at each place

v_y is the logit of the label, A the last map before pooling. Where the map is averaged and classified by a
linear layer, that is CAM (arXiv 1512.04150) up to a factor; for any other head it is its generalisation.
"""

from typing import Any

import torch
from torch import Tensor, nn

from samix.core.shapes import AttentionMap, Images
from samix.nn.encoder import as_map
from samix.nn.frozen import freeze


def class_activation(network: nn.Module, x: Images, y: Tensor) -> AttentionMap:
    """The class activation map of each image for its own label, at the size of the last map; may be negative.

    `network` maps images to logits; it is held in eval mode, and its weights get no gradient. Labels are
    class indices or rows.

    >>> network = nn.Sequential(nn.Conv2d(3, 4, 2, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
    >>> x = torch.rand(2, 3, 8, 8)
    >>> cam = class_activation(network, x, torch.tensor([0, 3]))
    >>> by_hand = (network[3].weight[[0, 3], :, None, None] * network[0](x)).sum(dim=1)
    >>> cam.shape, torch.allclose(16 * cam, by_hand, atol=1e-5)
    (torch.Size([2, 4, 4]), True)
    """
    last: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        if has_places(output):
            last[:] = [output]

    modules = list(network.modules())
    handles = [module.register_forward_hook(keep) for module in modules]
    try:
        with freeze(network), torch.enable_grad():
            logits = network(x.detach().requires_grad_()).float()
            rows = logits * y if y.ndim == 2 else logits.gather(1, y.long()[:, None])
            if not last or last[0].ndim == 3:
                raise ValueError(
                    "the policy needs class activation maps, which a network does not have whose last layers "
                    "give tokens or no maps at all; take a convolutional network, a Swin, or another policy."
                )
            (slope,) = torch.autograd.grad(rows.sum(), last)
    finally:
        for handle in handles:
            handle.remove()
    channels_last = any(getattr(module, "output_fmt", None) == "NHWC" for module in modules)  # Swin of timm
    weighed = (slope * last[0]).detach().float()
    return as_map(weighed, x.shape[-2:], channels_last=channels_last).sum(dim=1)


def has_places(output: Any) -> bool:
    """Whether a layer's output has a value per place: a map of more than one place, or tokens."""
    if not isinstance(output, Tensor):
        return False
    return output.ndim == 3 or (output.ndim == 4 and output.shape[-2:].numel() > 1)
