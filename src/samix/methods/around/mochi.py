"""MoCHi (arXiv 2010.01028): harder negatives, mixed from the queue's hardest keys and the query.

The contrast is MoCo's, with synthetic negatives beside the queue's. Images are not mixed.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.contract import Around, Context, Losses, Model
from samix.core.checks import check_at_least, check_not_negative, check_share
from samix.core.shapes import Embeddings, Index, PerSample, RandomSource, Scalar
from samix.losses.contrastive import Negatives, info_nce_per_sample
from samix.methods.ssl.base import Observed, SelfSupervised, Views, views_of

Synthetic = Float[Tensor, "B S D"]


@dataclass(frozen=True, kw_only=True)
class MoCHiConfig:
    """How many negatives are made, and of what."""

    hardest: int = 1024
    """Each query's most similar keys that its negatives are made of; at most the whole queue."""
    pairs: int = 1024
    """Negatives that are mixed from two keys."""
    queries: int = 128
    """Negatives that are mixed from a key and, for the smaller part, the query."""
    warmup: float = 0.05
    """Share of training without synthetic negatives (10 epochs of 200)."""

    mixes: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_at_least(1, self, "mixup", "hardest")
        check_not_negative(self, "mixup", "pairs", "queries")
        check_share(self, "mixup", "warmup")
        if self.pairs + self.queries == 0:
            raise ValueError("mixup.pairs and mixup.queries must not both be 0.")

    def build(self, method: SelfSupervised, context: Context) -> Model:
        """MoCHi around the method."""
        return MoCHi(method, self)


@torch.no_grad()
def hard_negatives(
    query: Embeddings,
    negatives: Negatives,
    *,
    hardest: int,
    pairs: int,
    queries: int,
    generator: RandomSource = None,
) -> Synthetic:
    """For each query q, unit vectors made of its own `hardest` negatives n, those with the largest q.n:

    `pairs` times norm(a n_1 + (1 - a) n_2) with a ~ U(0, 1), then `queries` times norm(b q + (1 - b) n) with
    b ~ U(0, 1/2), so that the query never dominates. They carry no gradient.
    """
    query, negatives = query.float(), negatives.float()
    hard = (query @ negatives.T).topk(min(hardest, len(negatives)), dim=1).indices  # [B, N]

    def pick(count: int) -> Tensor:
        places = torch.randint(hard.shape[1], (len(query), count), generator=generator)
        return negatives[hard.gather(1, places.to(hard.device))]  # [B, count, D]

    def weight(count: int) -> Tensor:
        return torch.rand(len(query), count, 1, generator=generator).to(query.device)

    between = torch.lerp(pick(pairs), pick(pairs), weight(pairs))
    towards = torch.lerp(pick(queries), query[:, None], weight(queries) / 2)
    return F.normalize(torch.cat([between, towards], dim=1), dim=2)


def harder_nce_per_sample(
    query: Embeddings, key: Embeddings, negatives: Negatives, synthetic: Synthetic, tau: float
) -> PerSample:
    """infoNCE with the query's synthetic negatives h in the sum: log(e^NCE + sum_h e^((q.h - q.k) / tau))."""
    query, key = query.float(), key.float()
    positive = (query * key).sum(dim=1, keepdim=True)  # [B, 1]
    gap = torch.einsum("bd,bsd->bs", query.float(), synthetic) - positive
    return torch.logaddexp(info_nce_per_sample(query, key, negatives, tau), (gap / tau).logsumexp(dim=1))


class MoCHi(Around):
    """MoCo whose queue is joined by negatives that are made for every query anew and never kept."""

    method: SelfSupervised

    def __init__(self, method: SelfSupervised, config: MoCHiConfig | None = None) -> None:
        super().__init__(method)
        if method.queue is None:
            raise ValueError(
                f"MoCHi mixes the negatives of a queue, and {type(method).__name__} has none. "
                "Choose MoCo v1 or v2 as --method."
            )
        self.config = config or MoCHiConfig()

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """MoCo's loss, after the warm-up with synthetic negatives; only clean keys enter the queue."""
        method = self.method
        method.begin(progress)
        seen = method.observe(*views_of(x, index))
        loss = method.loss(seen) if progress < self.config.warmup else self.loss(seen)
        method.remember(seen)
        return Losses(loss)

    def loss(self, seen: Observed) -> Scalar:
        """The contrast with harder negatives; gradients reach the queries, not what was made of them."""
        c, (query,), (key,) = self.config, seen.predictions, seen.targets
        assert seen.negatives is not None
        made = hard_negatives(query, seen.negatives, hardest=c.hardest, pairs=c.pairs, queries=c.queries)
        return harder_nce_per_sample(query, key, seen.negatives, made, self.method.tau).mean()
