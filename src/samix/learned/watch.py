"""What can go wrong with a Mixer, said by name: constant masks, masks that do not follow lam."""

import warnings
from collections.abc import Mapping

from samix.contract import MixerLog

CONSTANT_MASK = 0.01
"""A mask whose spatial deviation is below this is constant for all purposes."""
LYING_MASK = 0.2
"""Mean |mean(mask) - lam| above this: without adjusting, labels would say something else than images."""


class CollapsedMixerWarning(UserWarning):
    """The Mixer paints constant masks: the trivial solution."""


class DeafMixerWarning(UserWarning):
    """The Mixer's masks do not follow lam."""


class MixerWatch:
    """Warns when, for some epochs in a row, a Mixer has collapsed or does not follow lam."""

    def __init__(self, patience: int = 5) -> None:
        self.patience = patience
        self.constant = self.lying = 0

    def see(self, signs: MixerLog | Mapping[str, float] | None) -> None:
        """Looks once per epoch: at `losses.log` of its last batch, or at its means by the same names.

        None is the log of a batch that did not train the Mixer, and says nothing.
        """
        row = signs._asdict() if isinstance(signs, MixerLog) else signs or {}
        if "deviation" not in row:
            return
        self.constant = self.constant + 1 if row["deviation"] < CONSTANT_MASK else 0
        self.lying = self.lying + 1 if row["gap"] > LYING_MASK else 0
        if self.constant == self.patience:
            warnings.warn(
                f"the Mixer has collapsed to the trivial solution: for {self.patience} epochs its masks were "
                f"constant (spatial deviation {row['deviation']:.4f}), so the encoder sees Mixup. Try a "
                "lower --mixup.copy.momentum, a larger --mixup.mask.beta or --optimizer.mixer_lr.",
                CollapsedMixerWarning,
                stacklevel=2,
            )
        if self.lying == self.patience:
            warnings.warn(
                f"the Mixer does not follow lam: for {self.patience} epochs mean(mask) missed it by "
                f"{row['gap']:.2f} on average (gamma {row.get('gamma', float('nan')):.2f}). "
                "Keep --mixup.adjusting.prob 1, or raise --mixup.mixer.gamma.",
                DeafMixerWarning,
                stacklevel=2,
            )
