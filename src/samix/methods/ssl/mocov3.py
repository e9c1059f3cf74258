"""MoCo v3 (arXiv 2104.02057): a predictor, a momentum branch, and the keys of the batch as negatives."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_positive
from samix.core.distributed import gather_constant, own_places
from samix.core.shapes import Embeddings, Images, Index, PerSample
from samix.losses.contrastive import in_batch_nce_per_sample
from samix.methods.ssl.base import Branch, Observed
from samix.methods.ssl.byol import Predicting, PredictorConfig
from samix.nn.encoder import Encoder
from samix.nn.heads import mlp


@dataclass(frozen=True, kw_only=True)
class MoCoV3Config(PredictorConfig):
    """The ResNet heads; `layers` 3 and `predictor_norm` are the transformer's."""

    tau: float = 1.0
    """Temperature: 1 for ResNets, .2 for transformers."""
    layers: int = 2
    """Layers of the projector: 2 for ResNets, 3 for transformers."""
    predictor_norm: bool = False
    """Batch norm after the predictor, as transformers have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "method", "tau")

    def build(self, encoder: Encoder, features: int) -> "MoCoV3":
        """The method around an encoder whose output has `features` values."""
        return MoCoV3(encoder, features, self)


class MoCoV3(Predicting):
    """L = ctr(q_1, k_2) + ctr(q_2, k_1), ctr = 2 tau CE over the keys of the batch."""

    def __init__(self, encoder: Encoder, features: int, config: MoCoV3Config) -> None:
        widths = [features, *[config.hidden] * (config.layers - 1), config.dim]
        projector = mlp(widths, bias=(False, False), norm=True, last="plain")
        predictor = mlp(
            [config.dim, config.hidden, config.dim],
            bias=(False, False), norm=True, last="plain" if config.predictor_norm else "none",
        )  # fmt: skip
        super().__init__(Branch(encoder, projector), predictor, config)
        self.tau = config.tau

    def predict(self, x: Images) -> Embeddings:
        return F.normalize(super().predict(x).float(), dim=1)

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        """2 tau CE among all keys of the batch; both parents of a mixed image stand in that softmax."""
        keys = F.normalize(gather_constant(target).float(), dim=1)
        offset = own_places(len(target), target.device)[0]
        return 2 * self.tau * in_batch_nce_per_sample(prediction, keys, positive + offset, self.tau)
