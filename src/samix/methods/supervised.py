"""Supervised classification: encoder, a head for mixed images and, if wanted, a branch for clean ones."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.contract import Losses, Model
from samix.core.checks import check_below_one, check_not_negative, check_positive_share
from samix.core.mixed import Mixed, check_batch, check_finite
from samix.core.schedules import check_progress
from samix.core.shapes import AnyLabels, Features, Images, Logits, Maps, Scalar, Size
from samix.losses.classification import LabelLoss
from samix.nn.conventions import as_logits
from samix.nn.encoder import Encoder, find_layer
from samix.nn.frozen import freeze


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
    mix_until: float = 1.0
    """Share of training in which pictures are mixed; behind it the tested head learns from clean ones alone
    (timm's mixup_off_epoch)."""
    smoothing: float = 0.0
    """Label smoothing."""
    binary: bool = False
    """Soft-target binary cross-entropy (MBCE) instead of softmax cross-entropy (MCE)."""
    two_hot: bool = False
    """With `binary`: the target of a mixture is 1 for both classes (RSB) instead of lam and 1 - lam."""
    decoupled: float = 0.0
    """eta of Decoupled Mixup (arXiv 2203.10761): weight of the term that tells each class of a mixture from
    all classes that are not in it; 0 leaves it out."""

    def __post_init__(self) -> None:
        check_not_negative(self, "objective", "clean_weight", "decoupled")
        check_positive_share(self, "objective", "clean_fraction", "clean_crop", "mix_until")
        check_below_one(self, "objective", "smoothing")
        if self.two_hot and not self.binary:
            raise ValueError(
                "objective.two_hot needs objective.binary: softmax cannot give 1 to two classes."
            )
        if self.decoupled and self.binary:
            raise ValueError(
                f"objective.decoupled must be 0 with objective.binary, got {self.decoupled}: a loss of each "
                "class by itself couples none, so there is nothing to decouple."
            )

    @property
    def sees_batch(self) -> bool:
        """Whether there is a clean branch, and whether it sees every picture of the batch whole."""
        return self.clean_weight > 0 and self.clean_fraction == self.clean_crop == 1

    def mixes_at(self, progress: float) -> bool:
        """Whether pictures are still mixed when this share of training is done.

        >>> early = Objective(mix_until=0.6)
        >>> early.mixes_at(0.5), early.mixes_at(0.6), Objective().mixes_at(1.0)
        (True, False, True)
        """
        check_progress(progress)
        return self.mix_until == 1 or progress < self.mix_until


class Supervised(Model):
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
        self.loss = LabelLoss(
            classes,
            self.objective.smoothing,
            self.objective.binary,
            self.objective.two_hot,
            self.objective.decoupled,
        )

    @classmethod
    def around(
        cls, encoder: Encoder, classes: int, objective: Objective | None = None, size: int | Size = 32
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
        with freeze(self):
            logits, whole = self.logits(x), as_logits(self.encoder.network(x))
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

    def mixed_loss(
        self, logits: Logits, mixed: Mixed, x: Images, y: AnyLabels, clean: Scalar | None = None
    ) -> Scalar:
        """The loss of the mixed batch's logits plus the clean branch's, where there is one.

        `clean` is the clean branch's loss, where its pass has been run already.
        """
        loss = self.loss.mixed(logits, mixed, y)
        if not self.objective.clean_weight:
            return loss
        return loss + (self.clean_loss(x, y) if clean is None else clean)

    def clean_loss(self, x: Images, y: AnyLabels) -> Scalar:
        """The weighted loss of the clean branch, on as much of the batch as it sees.

        A pass of its own: clean and mixed images have different batch statistics.
        """
        count = part_of(len(x), self.objective.clean_fraction)
        return self.weigh_clean(self.encoder(random_crop(x[:count], self.objective.clean_crop)), y[:count])

    def clean_loss_and_maps(self, x: Images, y: AnyLabels) -> tuple[Scalar, Maps]:
        """The same of a branch that sees the whole batch, and the layer-l maps of its pass, detached."""
        features, z = self.encoder.output_and_maps(x)
        return self.weigh_clean(features, y), z

    def weigh_clean(self, features: Features, y: AnyLabels) -> Scalar:
        """The weighted loss of clean images with these features."""
        head = self.head if self.clean_head is None else self.clean_head
        return self.objective.clean_weight * self.loss.clean(head(features), y)

    def forward(self, x: Images, y: AnyLabels, progress: float = 0.0) -> Losses:
        """Plain training."""
        check_batch(x, y, self.classes)
        check_finite(x, len(x))
        return Losses(self.loss.clean(self.logits(x), y))

    def heads(self, x: Images) -> dict[str, Logits]:
        """Logits of the mixed head, and of the clean head if there is one."""
        features = self.encoder(x)
        heads = {"mix_q": self.head(features)}
        return heads if self.clean_head is None else heads | {"one_q": self.clean_head(features)}


def random_crop(x: Images, share: float) -> Float[Tensor, "B c h w"]:
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
