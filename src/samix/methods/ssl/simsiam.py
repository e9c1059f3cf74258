"""SimSiam (arXiv 2011.10566): predict the other view's own embedding with a stopped gradient."""

from dataclasses import dataclass

from torch import Tensor, nn

from samix.core.shapes import Embeddings, Images, Index, PerSample
from samix.losses.regression import simsiam_per_sample
from samix.methods.ssl.base import Branch, Observed, SelfSupervised
from samix.nn.encoder import Encoder
from samix.nn.heads import mlp


@dataclass(frozen=True, kw_only=True)
class SimSiamConfig:
    """Three-layer projector, bottleneck predictor."""

    dim: int = 2048
    """Width of the projector's layers and of the embedding."""
    hidden: int = 512
    """Width of the predictor's hidden layer."""

    def build(self, encoder: Encoder, features: int) -> "SimSiam":
        """The method around an encoder whose output has `features` values."""
        return SimSiam(encoder, features, self)


class SimSiam(SelfSupervised):
    """L = -(cos(p_1, sg z_2) + cos(p_2, sg z_1)) / 2."""

    def __init__(self, encoder: Encoder, features: int, config: SimSiamConfig) -> None:
        super().__init__()
        widths = [features, config.dim, config.dim, config.dim]
        self.branch = Branch(encoder, mlp(widths, bias=(False, False), norm=True, last="plain"))
        self.predictor = mlp([config.dim, config.hidden, config.dim], bias=(False, True), norm=True)

    def predict(self, x: Images) -> Embeddings:
        """p = h(z)."""
        return self.predictor(self.branch(x))

    def observe(self, first: Images, second: Images, *, predicting: bool = True) -> Observed:
        """One pass per view gives its prediction and the other's target."""
        z_1, z_2 = self.branch(first), self.branch(second)
        return Observed((self.predictor(z_1), self.predictor(z_2)), (z_2.detach(), z_1.detach()))

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        return simsiam_per_sample(prediction, target[positive])

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The predictor keeps its learning rate while the encoder's falls."""
        branch = [p for p in self.branch.parameters() if p.requires_grad]
        return {"encoder": branch, "constant": list(self.predictor.parameters())}
