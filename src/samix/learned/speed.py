"""The speed settings of an online Mixer: what of its work is left out."""

from dataclasses import dataclass

from samix.core.checks import check_positive_share, check_share
from samix.methods.supervised import Objective


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What of the Mixer's work is left out."""

    fraction: float = 1.0
    """Part of the batch that trains the Mixer (the paper: 1)."""
    prob: float = 1.0
    """Probability per batch of training the Mixer at all (official ViT runs: 0.8)."""
    online_maps: bool = False
    """Let the Mixer read the maps of the clean branch's pass, not of a pass of the momentum copy (the paper).
    For mixups with labels, beside a clean branch that sees the whole batch."""

    def __post_init__(self) -> None:
        check_positive_share(self, "mixup.speed", "fraction")
        check_share(self, "mixup.speed", "prob")

    def check(self, objective: Objective) -> None:
        """Refuses to read maps of a clean branch that does not make them for the whole batch."""
        if self.online_maps and not objective.sees_batch:
            raise ValueError(
                "mixup.speed.online_maps takes the Mixer's maps from the clean branch, which must see every "
                "picture of the batch whole: it needs objective.clean_weight above 0, clean_fraction 1 and "
                f"clean_crop 1; got {objective.clean_weight}, {objective.clean_fraction} and "
                f"{objective.clean_crop}."
            )
