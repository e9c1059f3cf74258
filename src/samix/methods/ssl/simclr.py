"""SimCLR (arXiv 2002.05709): both views of a picture against all other views of the batch."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_positive
from samix.core.distributed import gather, own_places
from samix.core.shapes import Embeddings, Images, Index, PerSample
from samix.losses.contrastive import in_batch_nce_per_sample, nt_xent_per_sample
from samix.methods.ssl.base import Branch, Observed, SelfSupervised
from samix.nn.encoder import Encoder
from samix.nn.heads import mlp


@dataclass(frozen=True, kw_only=True)
class SimCLRConfig:
    """Two-layer head with batch norm, temperature .1."""

    tau: float = 0.1
    """Temperature."""
    dim: int = 128
    """Width of the embedding."""
    hidden: int = 2048
    """Width of the head's hidden layer."""

    def __post_init__(self) -> None:
        check_positive(self, "method", "tau")

    def build(self, encoder: Encoder, features: int) -> "SimCLR":
        """The method around an encoder whose output has `features` values."""
        return SimCLR(encoder, features, self)


class SimCLR(SelfSupervised):
    """L = NT-Xent(z_1, z_2), mean over the first views' anchors plus mean over the second views'."""

    def __init__(self, encoder: Encoder, features: int, config: SimCLRConfig) -> None:
        super().__init__()
        head = mlp([features, config.hidden, config.dim], bias=(False, False), norm=True, last="scale")
        self.branch, self.config, self.tau = Branch(encoder, head), config, config.tau

    def predict(self, x: Images) -> Embeddings:
        """z = g f(x) / |g f(x)|."""
        return F.normalize(self.branch(x).float(), dim=1)

    def observe(self, first: Images, second: Images, *, predicting: bool = True) -> Observed:
        """Both views in one pass, so that batch norm sees them together; both carry gradients."""
        z_1, z_2 = self.predict(torch.cat([first, second])).chunk(2)
        return Observed((z_1, z_2), (z_2, z_1))

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        """Half of NT-Xent with both its sides, so that two directions make one."""
        place = own_places(len(prediction), prediction.device)
        first, second = gather(prediction), gather(target)
        return nt_xent_per_sample(first, second, place, positive + place[0], self.tau) / 2

    def shared_contrast(
        self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed
    ) -> PerSample:
        """i-Mix's N-pair form: only the other view's embeddings, in one softmax."""
        offset = own_places(len(prediction), prediction.device)[0]
        return in_batch_nce_per_sample(prediction, gather(target), positive + offset, self.tau)
