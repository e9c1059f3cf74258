"""SwAV (arXiv 2006.09882): predict the other view's code, its soft assignment to prototypes."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.checks import check_at_least, check_positive
from samix.core.distributed import gather_constant, own_places
from samix.core.shapes import Embeddings, Images, Index, PerSample, Scalar
from samix.core.small_crops import unpack
from samix.losses.codes import sinkhorn_codes, swapped_per_sample
from samix.methods.ssl.base import Branch, Observed, SelfSupervised, Views, views_of
from samix.nn.encoder import Encoder
from samix.nn.heads import mlp
from samix.nn.key_queue import Queue


@dataclass(frozen=True, kw_only=True)
class SwAVConfig:
    """Two views, 3,000 prototypes; small batches want a queue."""

    tau: float = 0.1
    """Temperature."""
    dim: int = 128
    """Width of the embedding."""
    hidden: int = 2048
    """Width of the head's hidden layer."""
    prototypes: int = 3000
    """How many codes there are; may exceed the batch."""
    epsilon: float = 0.05
    """Softness of the codes."""
    rounds: int = 3
    """Sinkhorn rounds."""
    stored: int = 0
    """Embeddings kept per view to make codes of small batches with; 0: none (3840 for a batch of 256)."""
    store_from: float = 0.075
    """Share of training after which the store is filled; it is used once it is full."""
    freeze: float = 0.005
    """Share of training in which the prototypes stay as they are (one epoch of 200)."""

    def __post_init__(self) -> None:
        check_positive(self, "method", "tau", "epsilon")
        check_at_least(2, self, "method", "prototypes")

    def build(self, encoder: Encoder, features: int) -> "SwAV":
        """The method around an encoder whose output has `features` values."""
        return SwAV(encoder, features, self)


class SwAV(SelfSupervised):
    """L = (CE(Q_2, s_1) + CE(Q_1, s_2)) / 2 with codes Q of clean views by Sinkhorn, scores s = C z.

    With small crops (multi-crop) every code is predicted by the other view and all crops, the mean of which
    counts: of V views and crops, sum_a 1 / (V - 1) sum_{v != a} CE(Q_a, s_v) / 2.
    """

    takes_crops = True

    def __init__(self, encoder: Encoder, features: int, config: SwAVConfig) -> None:
        super().__init__()
        self.branch = Branch(encoder, mlp([features, config.hidden, config.dim], norm=True))
        self.prototypes = nn.Linear(config.dim, config.prototypes, bias=False)
        self.stores = nn.ModuleList(Queue(config.stored, config.dim) for _ in range(2 * (config.stored > 0)))
        self.config, self.tau = config, config.tau
        self.is_frozen = self.is_storing = False
        self.small: list[Tensor] = []
        self.normalize_prototypes()

    def begin(self, progress: float) -> None:
        """Whether prototypes learn yet, and whether embeddings are stored yet."""
        self.is_frozen = progress < self.config.freeze
        self.is_storing = progress >= self.config.store_from

    def take(self, x: Views, index: Index) -> tuple[Images, Images]:
        """The two views; small crops are kept for `observe`."""
        if not self.crops.count:
            return views_of(x, index)
        whole, canvases = x[: 2 * len(index)], x[2 * len(index) :]
        self.small = unpack(canvases, self.crops, len(index))
        return views_of(whole, index)

    def embed(self, x: Images) -> Embeddings:
        """z = g f(x) / |g f(x)|."""
        return F.normalize(self.branch(x).float(), dim=1)

    def scores(self, z: Embeddings) -> Tensor:
        """s = C z."""
        weight = self.prototypes.weight
        return F.linear(z, weight.detach() if self.is_frozen else weight)

    def predict(self, x: Images) -> Tensor:
        """Scores of the images."""
        return self.scores(self.embed(x))

    def observe(self, first: Images, second: Images, *, predicting: bool = True) -> Observed:
        """Both views in one pass; the codes come from clean views only."""
        z = self.embed(torch.cat([first, second])).chunk(2)
        predictions = tuple(self.scores(each) for each in z)
        codes = [
            self.codes(number, each.detach(), s)
            for number, (each, s) in enumerate(zip(z, predictions, strict=True))
        ]
        small: tuple[Tensor, ...] = ()
        if self.small and predicting:
            small, self.small = self.predict(torch.cat(self.small)).chunk(len(self.small)), []
        return Observed(predictions, (codes[1], codes[0]), crops=small)

    def loss(self, seen: Observed) -> Scalar:
        """The clean loss; small crops predict the codes of both views."""
        whole, own = super().loss(seen), torch.arange(len(seen.targets[0]), device=seen.targets[0].device)
        parts = [self.contrast(s, code, own, seen).mean() for s in seen.crops for code in seen.targets]
        return (whole + sum(parts)) / (1 + len(seen.crops))

    @torch.no_grad()
    def codes(self, view: int, z: Embeddings, scores: Tensor) -> Tensor:
        """Sinkhorn over all processes' rows and, once it is full, the store; only own rows are returned."""
        everyone = gather_constant(scores.float())
        own, stored = own_places(len(scores), scores.device), 0
        if len(self.stores):
            store: Queue = self.stores[view]  # type: ignore[assignment]
            if store.is_full:
                stored = len(store.keys)
                everyone = torch.cat([F.linear(store.keys, self.prototypes.weight), everyone])
            if self.is_storing and self.training:
                store.push(gather_constant(z))
        return sinkhorn_codes(everyone, self.config.epsilon, self.config.rounds)[own + stored]

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        """Half of the swapped cross-entropy, so that two directions make SwAV's mean."""
        return swapped_per_sample(prediction, target[positive], self.tau) / 2

    @torch.no_grad()
    def normalize_prototypes(self) -> None:
        """Rows of C back to unit length."""
        self.prototypes.weight.copy_(F.normalize(self.prototypes.weight, dim=1))

    def after_step(self, progress: float) -> None:
        """Prototypes are unit vectors at the start of every step."""
        self.normalize_prototypes()
