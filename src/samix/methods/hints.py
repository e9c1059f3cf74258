"""Supplies what a policy declares in `needs`: once per batch, and only that."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.devices import at_hand
from samix.core.images import to_pixels
from samix.core.shapes import Images, Maps, Saliency, Scalar, Stats
from samix.mixups.base import Hints
from samix.nn.activation import class_activation
from samix.nn.attention import class_attention
from samix.nn.conventions import as_logits
from samix.nn.frozen import freeze, run_frozen


class Supplier(NamedTuple):
    """Where each hint comes from; `None` where nothing can supply it."""

    network: nn.Module | None = None
    """Images -> logits; gives saliency, attention and, as a missing teacher, class activation maps."""
    maps: Callable[[Images], Maps] | None = None
    """Images -> the feature maps that AttentiveMix reads."""
    teacher: nn.Module | None = None
    """A frozen classifier."""
    stats: Stats | None = None
    """How the images were normalised; None: they are in [0, 1] already."""

    def __call__(self, needs: Sequence[str], x: Images, y: Any) -> Hints:
        """The hints of these names for one batch; y are class labels where these are looked at."""
        makers: dict[str, Callable[[], object]] = {
            "pixels": lambda: pixels_of(x, self.stats),
            "saliency": lambda: input_saliency(self.require_network("saliency"), x, y),
            "attention": lambda: run_frozen(
                self.require_network("attention"), lambda network: class_attention(network, x)
            ),
            "maps": lambda: None if self.maps is None else self.maps(x),
            "teacher": lambda: teacher_of(self.teacher or self.require_network("teacher")),
            "labels": lambda: y,
            "activation": lambda: class_activation(
                self.teacher or self.require_network("class activation maps"), x, y
            ),
        }
        return Hints(**{name: makers[name]() for name in needs})  # type: ignore[arg-type]

    def require_network(self, what: str) -> nn.Module:
        """The network, or an error that says what it is needed for."""
        if self.network is None:
            raise ValueError(f"the policy needs {what}, which comes from a network: pass model=your_model.")
        return self.network


def pixels_of(x: Images, stats: Stats | None) -> Images:
    """The images in [0, 1], un-normalised where it is known how they were normalised.

    Images in another range are refused on the CPU; elsewhere a look would cost a synchronisation.
    """
    if stats is not None:
        return to_pixels(x, stats)
    if at_hand(x) and (x.min() < 0 or x.max() > 1):
        raise ValueError(
            f"the policy needs pixels in [0, 1], but the images lie in [{float(x.min()):.2f}, "
            f"{float(x.max()):.2f}]: pass mean= and std= of your normalisation."
        )
    return x.detach()


def input_saliency(network: nn.Module, x: Images, y: Tensor) -> Saliency:
    """sqrt(mean over channels of (d CE / d x)^2) on clean images, the network in eval mode (PuzzleMix).

    Only the gradient with respect to the images is computed, and batch norm's statistics stay untouched.
    """
    target = y.long() if y.ndim == 1 else y.float()
    return saliency_of(
        network, x, lambda seen: F.cross_entropy(as_logits(network(seen)).float(), target, reduction="sum")
    )


def saliency_of(network: nn.Module, x: Images, loss: Callable[[Images], Scalar]) -> Saliency:
    """sqrt(mean over channels of (d loss / d x)^2), the network frozen."""
    with freeze(network), torch.enable_grad():
        images = x.detach().requires_grad_()
        loss(images).backward()  # reaches the images alone
    assert images.grad is not None
    return images.grad.float().square().mean(dim=1).sqrt()


def teacher_of(network: nn.Module) -> Callable[[Tensor], Tensor]:
    """The network as a frozen function of images."""

    def classify(x: Tensor) -> Tensor:
        with freeze(network):
            return as_logits(network(x))

    return classify
