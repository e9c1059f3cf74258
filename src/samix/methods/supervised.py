"""Supervised classification: encoder, a head for mixed images and, if wanted, a branch for clean ones."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.hooks import find_layer
from samix.losses import cross_entropy, mixup_cross_entropy, soft_binary_cross_entropy
from samix.methods.base import Losses
from samix.methods.hints import frozen
from samix.mixups.labels import check_indices, check_labels, one_hot, smooth
from samix.mixups.mixed import Mixed
from samix.nn.encoder import Encoder
from samix.pairing import Pairing
from samix.pixels import check_images
from samix.typing import Images, Labels, Logits, Maps, Scalar


def linear_head(dim: int, classes: int) -> nn.Linear:
    """A linear classifier with weights N(0, .01) and zero bias."""
    head = nn.Linear(dim, classes)
    nn.init.normal_(head.weight, std=0.01)
    nn.init.zeros_(head.bias)
    return head


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What a supervised method minimises besides the loss of mixed images."""

    clean_weight: float = 0.0
    """Weight of the clean branch CE(y_i, p_i); 0 leaves it out."""
    clean_head: bool = True
    """Give the clean branch a linear head of its own (the paper) instead of the mixed images' head."""
    clean_fraction: float = 1.0
    """Part of the batch that the clean branch runs on (speed; the paper: 1)."""
    clean_crop: float = 1.0
    """Side of a random crop that the clean branch sees, in parts of the picture's (speed; the paper: 1)."""
    smoothing: float = 0.0
    """Label smoothing."""
    binary: bool = False
    """Soft-target binary cross-entropy (MBCE) instead of softmax cross-entropy (MCE)."""
    two_hot: bool = False
    """With `binary`: the target of a mixture is 1 for both classes (RSB) instead of lam and 1 - lam."""

    def __post_init__(self) -> None:
        if not self.clean_weight >= 0:  # NaN is not
            raise ValueError(f"objective.clean_weight must not be negative, got {self.clean_weight}.")
        if not 0 < self.clean_fraction <= 1:
            raise ValueError(f"objective.clean_fraction must lie in (0, 1], got {self.clean_fraction}.")
        if not 0 < self.clean_crop <= 1:
            raise ValueError(f"objective.clean_crop must lie in (0, 1], got {self.clean_crop}.")
        if self.two_hot and not self.binary:
            raise ValueError(
                "objective.two_hot needs objective.binary: softmax cannot give 1 to two classes."
            )
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"objective.smoothing must lie in [0, 1), got {self.smoothing}.")


class Supervised(nn.Module):
    """An encoder trained with labels. On its own it is the plain baseline; mixups wrap it.

    `head` maps the encoder's features to logits: `nn.Identity()` if the encoder gives logits already.
    `clean_head` classifies the clean branch; without one, that branch shares `head`.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        classes: int,
        *,
        clean_head: nn.Module | None = None,
        objective: Objective | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.head, self.clean_head = encoder, head, clean_head
        self.classes, self.objective = classes, objective or Objective()

    @classmethod
    def around(
        cls, encoder: Encoder, classes: int, objective: Objective | None = None, size: int = 32
    ) -> "Supervised":
        """A classifier (images -> logits) as a method; its own last layer is the head of mixed images.

        A clean branch with a head of its own needs an encoder that knows which layer that is (`head`).
        `size` is a picture size that the network accepts.
        """
        objective = objective or Objective()
        second = objective.clean_weight > 0 and objective.clean_head
        if second and encoder.head is None:
            raise ValueError(
                "objective.clean_head asks for a second head beside your classifier's own: name its last "
                "layer (head='fc'), or let clean and mixed pictures share it (clean_head=False)."
            )
        _, dim = encoder.probe(size)
        head = nn.Identity() if encoder.head is None else find_layer(encoder.network, encoder.head)
        clean_head = linear_head(dim, classes).to(next(encoder.parameters())) if second else None
        method = cls(encoder, head, classes, clean_head=clean_head, objective=objective)
        method.check_head(encoder.black(size))
        return method

    @torch.no_grad()
    def check_head(self, x: Images) -> None:
        """Refuses a network with another number of classes, and a head behind which it goes on."""
        with frozen(self):
            logits, whole = self.logits(x), self.encoder.network(x)
        if whole.shape[1] != self.classes:
            raise ValueError(
                f"the network gives {whole.shape[1]} logits, but there are {self.classes} classes."
            )
        if logits.shape != whole.shape or not torch.allclose(logits, whole, atol=1e-4, rtol=1e-3):
            raise ValueError(
                f"layer {self.encoder.head!r} is not the network's last: its output is not the network's. "
                "Name the layer that gives the logits."
            )

    def maps(self, x: Images) -> Maps:
        """The layer-l maps that a Mixer reads."""
        return self.encoder.maps(x)

    def logits(self, x: Images) -> Logits:
        """Logits of the head that learns from mixed images."""
        return self.head(self.encoder(x))

    @property
    def classifier(self) -> nn.Module:
        """Encoder and mixed head as one network, for policies that mix inside it."""
        return nn.Sequential(self.encoder, self.head)

    def clean_loss(self, logits: Logits, y: Labels) -> Scalar:
        """CE(y_i, p_i), SAMix Eq. (1), or its binary form."""
        smoothing = self.objective.smoothing
        if self.objective.binary:
            return soft_binary_cross_entropy(logits, smooth(one_hot(y, self.classes), smoothing))
        return cross_entropy(logits, y, smoothing)

    def mixing_loss(self, logits: Logits, mixed: Mixed, y: Labels) -> Scalar:
        """Mixup cross-entropy, SAMix Eq. (3), or its binary form."""
        smoothing = self.objective.smoothing
        if self.objective.binary:
            target = mixed.soft_labels(y, self.classes)
            if self.objective.two_hot:
                target = (target > 0).to(target)
            return soft_binary_cross_entropy(logits, smooth(target, smoothing))
        if mixed.parents is not None:
            return cross_entropy(logits, mixed.soft_labels(y, self.classes, smoothing))
        return mixup_cross_entropy(logits, y, mixed.pairing, smoothing)

    def mixed_loss(self, logits: Logits, mixed: Mixed, x: Images, y: Labels) -> Scalar:
        """The loss of the mixed batch's logits plus the weighted clean branch, where there is one."""
        loss, weight = self.mixing_loss(logits, mixed, y), self.objective.clean_weight
        if not weight:
            return loss
        # A pass of its own: clean and mixed images have different batch statistics.
        count = part_of(len(x), self.objective.clean_fraction)
        clean = random_crop(x[:count], self.objective.clean_crop)
        head = self.head if self.clean_head is None else self.clean_head
        return loss + weight * self.clean_loss(head(self.encoder(clean)), y[:count])

    def forward(self, x: Images, y: Labels, progress: float = 0.0) -> Losses:
        """Plain training."""
        self.check(x, y)
        return Losses(self.clean_loss(self.logits(x), y))

    def check(self, x: Tensor, y: Tensor) -> None:
        """Refuses labels that are no class indices, or out of range.

        On a GPU, a look at the range would cost a synchronisation, so it is left out there.
        """
        check_images(x)
        check_indices(y, len(x))
        if not y.is_cuda:
            check_labels(y, self.classes)

    def after_step(self, progress: float) -> None:
        """Plain training keeps no state besides its weights."""

    def heads(self, x: Images) -> dict[str, Logits]:
        """Logits of the mixed head, and of the clean head if there is one."""
        features = self.encoder(x)
        heads = {"mix_q": self.head(features)}
        return heads if self.clean_head is None else heads | {"one_q": self.clean_head(features)}

    def picture(self, x: Images, y: Labels, pairing: Pairing) -> Mixed | None:
        """Plain training mixes nothing."""
        return None

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Everything follows the encoder's optimiser settings."""
        return {"encoder": list(self.parameters())}


def random_crop(x: Images, share: float) -> Float[Tensor, "B 3 h w"]:
    """The same random part of every image, with sides of `share` times the image's; at 1 nothing is drawn."""
    if share == 1:
        return x
    height, width = (max(round(share * side), 1) for side in x.shape[-2:])
    top = int(torch.randint(x.shape[-2] - height + 1, ()))
    left = int(torch.randint(x.shape[-1] - width + 1, ()))
    return x[..., top : top + height, left : left + width]


def part_of(batch: int, fraction: float) -> int:
    """How many images a fraction of the batch is: at least 2, because one image has no partner."""
    return min(max(round(fraction * batch), 2), batch)
