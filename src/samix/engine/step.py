"""One training step: losses, one backward, the optimiser's step, and what is kept of it for the epoch's
row."""

import math
import time

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn, optim

from samix.contract import Losses
from samix.engine.recipe import Recipe
from samix.runs.records import Row


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite; the last good checkpoint is kept."""


def train_step(
    fabric: Fabric,
    model: nn.Module,
    optimizer: optim.Optimizer,
    batch: tuple[Tensor, Tensor],
    recipe: Recipe,
    share: float,
) -> Losses:
    """One optimiser step on one batch, in as many parts as the recipe asks."""
    pieces = list(zip(*(values.tensor_split(recipe.machine.accumulate) for values in batch), strict=True))
    weighted = []
    for number, (x, y) in enumerate(pieces, start=1):
        with fabric.no_backward_sync(model, enabled=number < len(pieces)):  # type: ignore[arg-type]
            losses: Losses = model(x, y, share)
            weight = len(x) / len(batch[0])
            fabric.backward(losses.total * weight)
        weighted.append((losses, weight))
    if recipe.optimizer.clip is not None:
        # Not finite: float16 skips such a step by itself, and otherwise `check_finite` says more.
        fabric.clip_gradients(model, optimizer, max_norm=recipe.optimizer.clip, error_if_nonfinite=False)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return mean_losses(weighted)


def mean_losses(parts: list[tuple[Losses, float]]) -> Losses:
    """The losses of a batch that was learned from in weighted parts; lam and log of the last part."""
    last, _ = parts[-1]
    if len(parts) == 1:
        return last
    encoder = torch.stack([losses.encoder.detach() * weight for losses, weight in parts]).sum()
    mixed = [(losses.mixer.detach() * weight, weight) for losses, weight in parts if losses.mixer is not None]
    mixer = torch.stack([loss for loss, _ in mixed]).sum() / sum(w for _, w in mixed) if mixed else None
    return last._replace(encoder=encoder, mixer=mixer)


def check_finite(losses: Losses, step: int, epoch: int) -> None:
    """Stops training before a bad gradient is written into a checkpoint."""
    parts = [part.detach() for part in (losses.encoder, losses.mixer) if part is not None]
    if torch.stack(parts).isfinite().all():
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


class Meter:
    """Means of an epoch's losses in this process, summed on the device and read once when the epoch ends."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}
        self.counts: dict[str, int] = {}

    def add(self, losses: Losses) -> None:
        """Adds one step."""
        values = {"loss": losses.encoder.detach()}
        if losses.mixer is not None and losses.log is not None:
            values |= {"mixer": losses.mixer.detach(), **losses.log._asdict()}
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, torch.zeros_like(value)) + value
            self.counts[name] = self.counts.get(name, 0) + 1

    def row(self, epoch: int, images: int, began: float) -> Row:
        """The epoch's row; a value that the model does not have (NaN) is left out."""
        means = {name: float(value) / self.counts[name] for name, value in self.sums.items()}
        means |= {"epoch": epoch, "images_per_s": images / (time.monotonic() - began)}
        return {name: value for name, value in means.items() if not math.isnan(value)}
