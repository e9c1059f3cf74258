"""What the parts of samix promise each other.

`Model` is what the engine trains. A model may also do what only some can do: classify (`Classifies`), paint
masks (`Paints`), keep clusters of all training pictures (`Clustered`) or an average of its weights
(`Averaged`); whoever needs one of these asks for it by `isinstance`. Settings of a mixup turn a method into a
model (`MixupSettings.build`), so that a new mixup, hand-made or learned, is one file and one line in a table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Embeddings, Images, Labels, Lam, Logits, Maps, Mask, Scalar, Size, Stats
from samix.nn.averaging import WeightAverage
from samix.nn.encoder import Encoder


class MixerLog(NamedTuple):
    """What tells whether a Mixer is alive, one value each (detached)."""

    local: Scalar
    """l_+ of Eq. (8)."""
    globally: Scalar
    """l_- of Eq. (8)."""
    mask: Scalar
    """The mask loss before its weight beta."""
    gamma: Scalar
    """Strength of the lam encoding; NaN where the Mixer has none."""
    gap: Scalar
    """Mean of |mean(mask) - lam| before adjusting."""
    deviation: Scalar
    """Mean over the batch of the mask's spatial standard deviation; 0 is the trivial solution."""


class Losses(NamedTuple):
    """The parts of one step's objective, SAMix Eq. (5); their gradients reach disjoint parameters."""

    encoder: Scalar
    """Reaches the encoder and its heads only."""
    mixer: Scalar | None = None
    """Reaches the Mixer only; None for hand-made mixups."""
    lam: Lam | None = None
    """The lam that the encoder's images were mixed with, None for plain training."""
    log: MixerLog | None = None

    @property
    def total(self) -> Scalar:
        """L_theta,omega + L_phi."""
        return self.encoder if self.mixer is None else self.encoder + self.mixer


class Model(nn.Module):
    """A trainable model as the engine sees it."""

    encoder: Encoder
    """The network that training is for."""

    @property
    def sync_norm(self) -> bool:
        """Whether batch norm's statistics are shared between GPUs."""
        return False

    @property
    def masks_pairs(self) -> bool:
        """Whether a mixed image is two images of the batch under one mask."""
        return False

    def forward(self, x: Images, y: Labels, progress: float = 0.0) -> Losses:
        """The losses of one batch; `progress` in [0, 1] is the share of training done."""
        raise TypeError(f"{type(self).__name__} must define forward(x, y, progress).")

    def after_step(self, progress: float) -> None:
        """Momentum update and projections, right after the optimiser's step; by default nothing."""

    def picture(self, x: Images, y: Labels, pairing: Pairing) -> Mixed | None:
        """What the model would mix, to look at; None where nothing is mixed."""
        return None

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Trainable parameters by the optimiser settings they follow: 'encoder', 'mixer', 'head',
        'constant'."""
        return {"encoder": [parameter for parameter in self.parameters() if parameter.requires_grad]}


class Around(Model):
    """What wraps a method and changes its losses; whatever it does not define is the method's own."""

    def __init__(self, method: Any) -> None:
        super().__init__()
        self.method = method

    @property
    def encoder(self) -> Encoder:  # type: ignore[override]
        """The method's."""
        return self.method.encoder

    @property
    def sync_norm(self) -> bool:
        """As the method asks."""
        return self.method.sync_norm

    def after_step(self, progress: float) -> None:
        """The method's own."""
        self.method.after_step(progress)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's own."""
        return self.method.parameter_groups()


@runtime_checkable
class Classifies(Protocol):
    """A model that can be tested by its accuracy."""

    def heads(self, x: Images) -> dict[str, Logits]:
        """Logits of every head for evaluation; the first is the one to report."""


@runtime_checkable
class Paints(Protocol):
    """A model whose masks are painted by a Mixer."""

    def maps(self, x: Images) -> Maps:
        """The maps of clean images that the Mixer reads."""

    def paint(self, z: Maps, pairing: Pairing, size: Size) -> Mask:
        """The Mixer's masks, before they are adjusted to lam."""

    def explain(self, z: Maps, pairing: Pairing) -> tuple[Tensor, Tensor]:
        """Content and attention of each mask, both [B, h, w]."""

    def mixer_weights(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The Mixer together with the encoder that it reads, and the Mixer's settings as plain values."""


@runtime_checkable
class Clustered(Protocol):
    """A model that learns with the labels of clusters, which it keeps for all training pictures."""

    def begin_clusters(self, embed: Callable[[nn.Module], Embeddings], truth: Labels, seed: int) -> None:
        """Clusters the pictures, unless a checkpoint brought clusters along.

        `embed` gives what a network makes of all training pictures; `truth` are the dataset's own labels.
        """

    def cluster_labels(self) -> Labels:
        """The cluster of every training picture."""


@runtime_checkable
class Averaged(Protocol):
    """A model that keeps an average of its classifier's weights beside them."""

    average: WeightAverage
    """Images -> logits."""


class Context(NamedTuple):
    """What a mixup may need to know, besides the method, to join it."""

    channels: int
    """Channels of the map that a Mixer reads."""
    size: int
    """Side of the pictures."""
    mixing: Callable[..., Model]
    """(method, policy, stats=...) -> the method with its images mixed by a hand-made policy."""
    stats: Stats | None = None
    """How images are normalised; None: they are in [0, 1]."""
    pictures: int = 0
    """Number of training pictures, for models that remember each of them."""


AnyMethod = TypeVar("AnyMethod", contravariant=True)


@runtime_checkable
class MixupSettings(Protocol[AnyMethod]):
    """How images are mixed, as a typed value that a recipe holds: a hand-made policy, a learned one, or
    none."""

    mixes: ClassVar[bool]
    """Whether images are mixed at all."""
    learned: ClassVar[bool]
    """Whether masks are learned along with the encoder."""

    def build(self, method: AnyMethod, context: Context) -> Model:
        """The method, wrapped in what mixes its images."""


@dataclass(frozen=True, kw_only=True)
class Plain:
    """No mixup."""

    mixes: ClassVar[bool] = False
    learned: ClassVar[bool] = False

    def build(self, method: Model, context: Context) -> Model:
        """The method as it is."""
        return method
