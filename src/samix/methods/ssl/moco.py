"""MoCo v1 and v2 (arXiv 1911.05722, 2003.04297): a queue of keys from a momentum encoder as negatives."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_at_least, check_positive, check_share
from samix.core.distributed import gather_constant, own_places, shared_permutation, world
from samix.core.shapes import Embeddings, Images, Index, PerSample
from samix.losses.contrastive import in_batch_nce_per_sample, info_nce_per_sample
from samix.methods.ssl.base import Branch, Observed, SelfSupervised
from samix.nn.encoder import Encoder, momentum_copy, momentum_update
from samix.nn.heads import mlp
from samix.nn.key_queue import Queue
from samix.nn.split_norm import split_norms


@dataclass(frozen=True, kw_only=True)
class MoCoV2:
    """Two-layer head, temperature .2."""

    tau: float = 0.2
    """Temperature."""
    queue: int = 65536
    """How many keys serve as negatives; any number, also one that the batch does not divide."""
    dim: int = 128
    """Width of the embedding."""
    hidden: int | None = 2048
    """Width of the head's hidden layer (the original has the encoder's width); null: a linear head."""
    momentum: float = 0.999
    """Momentum of the key encoder, constant."""
    norm_groups: int = 1
    """Batch norm over so many groups of the batch of all processes, and permuted keys, stand in for
    shuffle-BN (8 is usual); processes count as groups and shuffle over themselves."""

    def __post_init__(self) -> None:
        check_positive(self, "method", "tau")
        check_share(self, "method", "momentum")
        check_at_least(1, self, "method", "queue", "dim", "norm_groups")

    def build(self, encoder: Encoder, features: int) -> "MoCo":
        """The method around an encoder whose output has `features` values."""
        return MoCo(encoder, features, self)


@dataclass(frozen=True, kw_only=True)
class MoCoV1(MoCoV2):
    """Linear head, temperature .07."""

    tau: float = 0.07
    hidden: int | None = None


class MoCo(SelfSupervised):
    """L = NCE(q, k) with q of the first view, k the momentum branch's key of the second, and the queue."""

    sync_norm = False  # shuffle-BN instead

    def __init__(self, encoder: Encoder, features: int, config: MoCoV2) -> None:
        super().__init__()
        widths = [features, config.dim] if config.hidden is None else [features, config.hidden, config.dim]
        split_norms(encoder, config.norm_groups // world())
        self.branch = Branch(encoder, mlp(widths))
        self.momentum = momentum_copy(self.branch)
        self.queue = Queue(config.queue, config.dim)
        self.config, self.tau = config, config.tau

    def predict(self, x: Images) -> Embeddings:
        """q = g f(x) / |g f(x)|."""
        return F.normalize(self.branch(x).float(), dim=1)

    def clean_predictions(self, first: Images, second: Images) -> tuple[Tensor, ...]:
        """q of the first view."""
        return (self.predict(first),)

    def observe(self, first: Images, second: Images, *, predicting: bool = True) -> Observed:
        """q of the first view against k of the second."""
        queries = self.clean_predictions(first, second) if predicting else ()
        keys = self.keys(second)
        assert self.queue is not None
        return Observed(queries, (F.normalize(keys, dim=1),), keys, self.queue.read())

    @torch.no_grad()
    def keys(self, x: Images) -> Embeddings:
        """The momentum branch's embeddings, in batches that were shuffled over all processes or groups."""
        assert self.momentum is not None
        if world() == 1 and self.config.norm_groups == 1:
            return self.momentum(x).float()
        everyone, places = gather_constant(x), own_places(len(x), x.device)
        order = shared_permutation(len(everyone), x.device)
        shuffled = gather_constant(self.momentum(everyone[order[places]]).float())
        return shuffled[order.argsort()[places]]

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        """infoNCE, SAMix Eq. (2): each positive in a softmax of its own with the queue."""
        assert seen.negatives is not None
        return info_nce_per_sample(prediction, target[positive], seen.negatives, self.tau)

    def shared_contrast(
        self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed
    ) -> PerSample:
        """i-Mix: the keys of all pictures of the batch and the queue in one softmax."""
        assert seen.negatives is not None
        keys = torch.cat([gather_constant(target), seen.negatives])
        offset = own_places(len(target), target.device)[0]
        return in_batch_nce_per_sample(prediction, keys, positive + offset, self.tau)

    def same_view_targets(self, first: Images, second: Images, seen: Observed) -> tuple[Tensor, ...]:
        return (F.normalize(self.keys(first), dim=1),)

    def after_step(self, progress: float) -> None:
        """The momentum branch follows, SAMix Eq. (14)."""
        assert self.momentum is not None
        momentum_update(self.momentum, self.branch, self.config.momentum)
