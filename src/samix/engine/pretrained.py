"""SAMix-P in a recipe: the Mixer of another run, frozen, mixes the images of this one."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from samix.contract import Context, Model
from samix.core.checks import check_at_least
from samix.core.pairing import check_alpha
from samix.learned.mixer import Adjusting
from samix.runs.mixers import load_mixer


@dataclass(frozen=True, kw_only=True)
class PretrainedMixup:
    """SAMix-P: which Mixer, and how its masks are used."""

    mixer: str | None = None
    """A shipped Mixer by name (null: tiny), a finished run with a learned mixup, its mixer.safetensors, or
    hf://owner/name."""
    size: int | None = None
    """Short side at which the Mixer looks at pictures: smaller is faster and finds objects less well; null:
    what its file says."""
    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha)."""
    per_sample: bool = True
    """Draw one lam per pair instead of one per batch."""
    adjusting: Adjusting = field(default_factory=lambda: Adjusting(rule="shift"))
    """How masks are given the mean lam."""

    mixes: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha, "mixup.alpha")
        check_at_least(8, self, "mixup", "size")

    def build(self, method: Model, context: Context) -> Model:
        """The method with its images mixed by the frozen Mixer."""
        policy = replace(
            load_mixer(self.mixer), alpha=self.alpha, per_sample=self.per_sample, adjusting=self.adjusting
        )
        if self.size is not None:
            policy.painter.size = self.size
        return policy.build(method, context)
