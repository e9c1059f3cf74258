"""Losses and weights that are not finite, said by name before they reach a checkpoint."""

from torch import nn

from samix.methods.base import Losses


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite; the last good checkpoint is kept."""


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
