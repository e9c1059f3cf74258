"""What can go wrong in training, said by name: losses that are not finite, Mixers that collapse."""

import warnings

from torch import nn

from samix.engine.log import Row
from samix.methods.base import Losses

CONSTANT_MASK = 0.01
"""A mask whose spatial deviation is below this is constant for all purposes."""
LYING_MASK = 0.2
"""Mean |mean(mask) - lam| above this: without adjusting, labels would say something else than images."""


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite; the last good checkpoint is kept."""


class CollapsedMixerWarning(UserWarning):
    """The Mixer paints constant masks: the trivial solution."""


class DeafMixerWarning(UserWarning):
    """The Mixer's masks do not follow lam."""


def check_finite(losses: Losses, step: int, epoch: int) -> None:
    """Stops training before a bad gradient is written into a checkpoint."""
    if losses.total.isfinite():
        return
    lam = "none" if losses.lam is None else ", ".join(f"{value:.3f}" for value in losses.lam[:4].tolist())
    mixer = "none" if losses.mixer is None else f"{losses.mixer.item():.4g}"
    raise NonFiniteLossError(
        f"the loss is not finite at step {step} (epoch {epoch}): encoder {losses.encoder.item():.4g}, "
        f"Mixer {mixer}, lam {lam}. The last checkpoint is untouched. Try a smaller --optimizer.lr or "
        "--optimizer.mixer_lr, --optimizer.clip 5, or --machine.precision 32-true."
    )


def check_weights(model: nn.Module, epoch: int) -> None:
    """Keeps weights that blew up in an epoch's last step out of the checkpoint."""
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise NonFiniteLossError(
                f"{name} is not finite after epoch {epoch}. The last checkpoint is untouched. Try a smaller "
                "--optimizer.lr or --optimizer.mixer_lr, or --optimizer.clip 5."
            )


class MixerWatch:
    """Warns when, for some epochs in a row, a Mixer has collapsed or does not follow lam."""

    def __init__(self, patience: int = 5) -> None:
        self.patience = patience
        self.constant = self.lying = 0

    def see(self, row: Row) -> None:
        """Looks at one epoch's row of the log."""
        if "deviation" not in row:
            return
        self.constant = self.constant + 1 if row["deviation"] < CONSTANT_MASK else 0
        self.lying = self.lying + 1 if row["gap"] > LYING_MASK else 0
        if self.constant == self.patience:
            warnings.warn(
                f"the Mixer has collapsed to the trivial solution: for {self.patience} epochs its masks were "
                f"constant (spatial deviation {row['deviation']:.4f}), so the encoder sees Mixup. Try a "
                "lower --mixup.momentum, a larger --mixup.beta or --optimizer.mixer_lr.",
                CollapsedMixerWarning,
                stacklevel=2,
            )
        if self.lying == self.patience:
            warnings.warn(
                f"the Mixer does not follow lam: for {self.patience} epochs mean(mask) missed it by "
                f"{row['gap']:.2f} on average (gamma {row.get('gamma', float('nan')):.2f}). "
                "Keep --mixup.adjust 1, or raise --mixup.mixer.gamma.",
                DeafMixerWarning,
                stacklevel=2,
            )
