"""AutoMix (arXiv 2103.13027): the learned mixup that SAMix grew out of, composed of the same parts."""

from dataclasses import dataclass, field

from samix.core.renamed import OLD_NAMES, accept_old_names
from samix.learned.losses import MaskLoss
from samix.learned.mixer import MixerConfig
from samix.learned.samix import LearnedMixup


@accept_old_names(OLD_NAMES)
@dataclass(frozen=True, kw_only=True)
class AutoMixed(LearnedMixup):
    """MixBlock, mixup cross-entropy, one lam per batch, mask loss on the mean only."""

    mixer: MixerConfig = field(
        default_factory=lambda: MixerConfig(
            encoding="concat", attention="cross", content="linear", upsample="nearest"
        )
    )
    per_sample: bool = False
    local: float = 0.0
    eta: float = 1.0
    mask: MaskLoss = field(default_factory=lambda: MaskLoss(beta=0.1, beta_end=0.0, margin=0.1, variance=0.0))
