"""Mixed pictures, their masks and what the Mixer looks at, written as arrays for the report to draw."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from samix.data.datasets import Split
from samix.data.packs import stacked
from samix.data.synthetic import draw_pictures
from samix.data.views import denormalize, normalize, test_view
from samix.engine.checkpoint import write_atomically, write_text
from samix.engine.config import Plain, Recipe, Training
from samix.evaluate.following import Following, follow_lam
from samix.evaluate.retention import retention_sweep
from samix.methods.hints import frozen
from samix.methods.samix import LearnedMixing
from samix.mixups.base import Mixup
from samix.mixups.mixed import Mixed
from samix.pairing import Pairing
from samix.random import fold, seeded
from samix.typing import Images, Labels

PAIRS = 6
LAMS = tuple(round(0.1 * step, 1) for step in range(11))


@torch.no_grad()
def measure_following(recipe: Training, model: Any, split: Split, count: int = 200) -> Following | None:
    """How the Mixer's raw masks of test pictures follow lam; None where nothing is learned."""
    if not isinstance(model, LearnedMixing):
        return None
    x, _ = sample_images(recipe, model, split, count)
    index = torch.arange(len(x), device=x.device).roll(len(x) // 2)
    size = (x.shape[-2], x.shape[-1])
    with frozen(model):
        z = model.maps(x)
        masks = [model.mixer(z, Pairing(x.new_tensor([lam]), index), size).cpu() for lam in LAMS]
    return follow_lam(torch.stack(masks), torch.tensor(LAMS))


def sample_images(recipe: Training, model: Any, split: Split, count: int) -> tuple[Images, Labels]:
    """Normalised test pictures of all classes in turn with their labels, on the model's device."""
    chosen = one_of_each_class(split.test.labels, count)
    raw = test_view(recipe.data)(stacked([split.test.pictures[int(i)] for i in chosen]))
    device = next(model.parameters()).device
    return normalize(raw.to(device), split.mean, split.std), split.test.labels[chosen].to(device)


def write_samples(folder: Path, recipe: Training, model: Any, split: Split) -> None:
    """samples.npz: test pictures of different classes in pairs, mixed over the lam range."""
    x, y = sample_images(recipe, model, split, 2 * PAIRS)
    raw = denormalize(x, split.mean, split.std).cpu()
    half = len(x) // 2
    index = torch.arange(len(x), device=x.device).roll(half)
    arrays: dict[str, Any] = {
        "first": raw[:half],
        "partner": raw[index[:half].cpu()],
        "lams": np.array(LAMS, dtype=np.float32),
    }
    with seeded(fold(recipe.seed, "samples")):
        sweep = [model.picture(x, y, Pairing(x.new_tensor([lam]), index)) for lam in LAMS]
    mixed = [m for m in sweep if m is not None]
    if mixed:
        arrays["masks"] = torch.stack([m.mask.expand(len(x), -1, -1, -1)[:half].float().cpu() for m in mixed])
        arrays["mixed"] = torch.stack([denormalize(m.x[:half], split.mean, split.std).cpu() for m in mixed])
    if isinstance(model, LearnedMixing):
        content, attention = explain(model, x, Pairing(x.new_tensor([0.5]), index))
        arrays |= {"content": content[:half].cpu(), "attention": attention[:half].cpu()}
    plain = {name: np.asarray(value) for name, value in arrays.items()}
    write_atomically(folder / "samples.npz", lambda temporary: _save(temporary, plain))


@torch.no_grad()
def explain(model: LearnedMixing, x: Images, pairing: Pairing) -> tuple[Tensor, Tensor]:
    """The Mixer's content map and its attention averaged over the asking positions, both [B, h, w]."""
    with frozen(model):
        z = model.maps(x).float()
        parts = model.mixer.parts(z, pairing)
    return parts.content[:, 0], parts.attention.mean(dim=1).view(len(z), *z.shape[-2:])


@torch.no_grad()
def write_retention(folder: Path, recipe: Training, model: Any, split: Split, count: int = 240) -> None:
    """retention.csv: how much of each object a mixed picture keeps; only where true masks are known."""
    if recipe.data.name != "synthetic" or not isinstance(recipe, Recipe) or isinstance(recipe.mixup, Plain):
        return
    if isinstance(recipe.mixup, Mixup) and not recipe.mixup.masks_pairs:
        return
    pictures = draw_pictures(count, size=recipe.data.size, seed=fold(recipe.data.subset_seed, "retention"))
    device = next(model.parameters()).device

    def mix(images: Images, pairing: Pairing) -> Mixed:
        """Mixes images in [0, 1] as the model would mix normalised ones."""
        x = normalize((images * 255).round().to(device, torch.uint8), split.mean, split.std)
        guess = next(iter(model.heads(x).values())).argmax(dim=1)
        mixed = model.picture(x, guess, Pairing(pairing.lam.to(device), pairing.index.to(device)))
        moved = mixed.sources
        sources = None if moved is None else lambda t: tuple(part.cpu() for part in moved(t.to(device)))
        return Mixed(images, mixed.mask.cpu(), pairing, sources=sources)

    with seeded(fold(recipe.seed, "retention")), frozen(model):
        rows = retention_sweep(mix, pictures, LAMS)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0]._fields)
    writer.writerows([f"{value:.4f}" for value in row] for row in rows)
    write_text(folder / "retention.csv", text.getvalue())


def one_of_each_class(labels: Tensor, count: int) -> Tensor:
    """Positions of `count` pictures, going through the classes in turn."""
    order = torch.argsort(labels, stable=True)
    sorted_labels = labels[order]
    starts = torch.searchsorted(sorted_labels, sorted_labels)
    rank = torch.arange(len(labels)) - starts
    return order[torch.argsort(rank, stable=True)][:count]


def _save(path: Path, arrays: dict[str, Any]) -> None:
    with path.open("wb") as handle:
        np.savez_compressed(handle, **arrays)
