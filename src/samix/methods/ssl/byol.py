"""BYOL (arXiv 2006.07733): predict the momentum branch's embedding of the other view, without negatives."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from samix.core.checks import check_share
from samix.core.schedules import cosine
from samix.core.shapes import Embeddings, Images, Index, PerSample
from samix.losses.regression import byol_per_sample
from samix.methods.ssl.base import Branch, Observed, SelfSupervised
from samix.nn.encoder import Encoder, momentum_copy, momentum_update
from samix.nn.heads import mlp


@dataclass(frozen=True, kw_only=True)
class PredictorConfig:
    """Methods with a predictor and a momentum branch that slows down to a halt."""

    dim: int = 256
    """Width of the embedding."""
    hidden: int = 4096
    """Width of the hidden layers of projector and predictor."""
    momentum: float = 0.99
    """Momentum at the start; rises to 1 on half a cosine (.99 for 100 and 300 epochs, .996 for 1000)."""

    def __post_init__(self) -> None:
        check_share(self, "method", "momentum")


@dataclass(frozen=True, kw_only=True)
class BYOLConfig(PredictorConfig):
    """BYOL's heads."""

    def build(self, encoder: Encoder, features: int) -> "BYOL":
        """The method around an encoder whose output has `features` values."""
        return BYOL(encoder, features, self)


class Predicting(SelfSupervised):
    """A predictor behind the online branch; its targets are the momentum branch's view of the other image."""

    def __init__(self, branch: Branch, predictor: nn.Module, config: PredictorConfig) -> None:
        super().__init__()
        self.branch, self.predictor, self.config = branch, predictor, config
        self.momentum = momentum_copy(branch)

    def predict(self, x: Images) -> Embeddings:
        """p = h(g f(x))."""
        return self.predictor(self.branch(x))

    def clean_predictions(self, first: Images, second: Images) -> tuple[Tensor, ...]:
        """p of both views."""
        return (self.predict(first), self.predict(second))

    def observe(self, first: Images, second: Images, *, predicting: bool = True) -> Observed:
        """Each view predicts the other's target."""
        predictions = self.clean_predictions(first, second) if predicting else ()
        assert self.momentum is not None
        with torch.no_grad():
            z_1, z_2 = self.momentum(first), self.momentum(second)
        return Observed(predictions, (z_2, z_1), keys=z_2)

    def after_step(self, progress: float) -> None:
        """The momentum branch follows, ever more slowly."""
        assert self.momentum is not None
        momentum_update(self.momentum, self.branch, cosine(progress, self.config.momentum, 1.0))


class BYOL(Predicting):
    """L = |p_1 - z_2|^2 + |p_2 - z_1|^2 on unit vectors."""

    def __init__(self, encoder: Encoder, features: int, config: BYOLConfig) -> None:
        projector = mlp([features, config.hidden, config.dim], bias=(True, False), norm=True)
        predictor = mlp([config.dim, config.hidden, config.dim], bias=(True, False), norm=True)
        super().__init__(Branch(encoder, projector), predictor, config)

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        return byol_per_sample(prediction, target[positive])
