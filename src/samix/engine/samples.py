"""Mixed pictures, their masks and what the Mixer looks at, written as arrays for the report to draw."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from samix.contract import Classifies, Model, Paints
from samix.core.mixed import Mixed, Sources
from samix.core.pairing import Pairing
from samix.core.seeds import fold, seeded
from samix.core.shapes import Images, Labels
from samix.data.datasets import Split
from samix.data.packs import stacked
from samix.data.synthetic import draw_pictures
from samix.data.views import denormalize, normalize, test_view
from samix.engine.recipe import Recipe
from samix.evaluate.following import Following, follow_lam
from samix.evaluate.retention import retention_sweep
from samix.learned.losses import evidence_loss
from samix.learned.samix import LearnedMixing
from samix.nn.frozen import freeze
from samix.runs.samples import save_retention, save_samples

PAIRS = 6
LAMS = tuple(round(0.1 * step, 1) for step in range(11))


@torch.no_grad()
def measure_following(recipe: Recipe, model: Model, split: Split, count: int = 200) -> Following | None:
    """How the Mixer's raw masks of test pictures follow lam; None where nothing is learned."""
    if not isinstance(model, Paints):
        return None
    x, _ = sample_images(recipe, model, split, count)
    index = torch.arange(len(x), device=x.device).roll(len(x) // 2)
    with freeze(model):
        z = model.maps(x)
        masks = [model.paint(z, Pairing(x.new_tensor([lam]), index), x.shape[-2:]).cpu() for lam in LAMS]
    return follow_lam(torch.stack(masks), torch.tensor(LAMS))


@torch.no_grad()
def measure_evidence(recipe: Recipe, model: Model, split: Split, count: int = 100) -> float | None:
    """Share of both pictures' evidence that the masks of test pictures keep, mean over lam; blind masks: 1/2.

    None where the Mixer was not trained on it.
    """
    if not isinstance(model, LearnedMixing) or not model.settings.mask.evidence:
        return None
    x, _ = sample_images(recipe, model, split, count)
    index = torch.arange(len(x), device=x.device).roll(len(x) // 2)
    with freeze(model):
        z, energy = model.maps(x), model.evidence(x)
        pairings = [Pairing(x.new_tensor([lam]), index) for lam in LAMS[1:-1]]
        lost = [evidence_loss(model.paint(z, p, x.shape[-2:]), energy, p) for p in pairings]
    return 1 - float(torch.stack(lost).mean())


def sample_images(recipe: Recipe, model: Model, split: Split, count: int) -> tuple[Images, Labels]:
    """Normalised test pictures of all classes in turn with their labels, on the model's device."""
    chosen = one_of_each_class(split.test.labels, count)
    raw = test_view(recipe.data)(stacked([split.test.pictures[int(i)] for i in chosen]))
    device = next(model.parameters()).device
    return normalize(raw.to(device), split.mean, split.std), split.test.labels[chosen].to(device)


def write_samples(folder: Path, recipe: Recipe, model: Model, split: Split) -> None:
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
    if isinstance(model, Paints):
        with freeze(model), torch.no_grad():
            content, attention = model.explain(model.maps(x), Pairing(x.new_tensor([0.5]), index))
        arrays |= {"content": content[:half].cpu(), "attention": attention[:half].cpu()}
    save_samples(folder, {name: np.asarray(value) for name, value in arrays.items()})


@torch.no_grad()
def write_retention(folder: Path, recipe: Recipe, model: Model, split: Split, count: int = 240) -> None:
    """retention.csv: how much of each object a mixed picture keeps; only where true masks are known."""
    if recipe.data.name != "synthetic" or not model.masks_pairs or not isinstance(model, Classifies):
        return
    pictures = draw_pictures(count, size=recipe.data.size, seed=fold(recipe.data.subset_seed, "retention"))
    device = next(model.parameters()).device

    def mix(images: Images, pairing: Pairing) -> Mixed:
        """Mixes images in [0, 1] as the model would mix normalised ones."""
        x = normalize((images * 255).round().to(device, torch.uint8), split.mean, split.std)
        guess = next(iter(model.heads(x).values())).argmax(dim=1)
        mixed = model.picture(x, guess, Pairing(pairing.lam.to(device), pairing.index.to(device)))
        assert mixed is not None  # `masks_pairs` says so
        return Mixed(images, mixed.mask.cpu(), pairing, sources=on_cpu(mixed.sources, device))

    with seeded(fold(recipe.seed, "retention")), freeze(model):
        rows = retention_sweep(mix, pictures, LAMS)
    save_retention(folder, [row._asdict() for row in rows])


def on_cpu(sources: Sources | None, device: torch.device) -> Sources | None:
    """How images were moved on a device, for images on the CPU."""
    if sources is None:
        return None

    def move(target: Tensor) -> tuple[Tensor, Tensor]:
        first, second = sources(target.to(device))
        return first.cpu(), second.cpu()

    return move


def one_of_each_class(labels: Tensor, count: int) -> Tensor:
    """Positions of `count` pictures, going through the classes in turn."""
    order = torch.argsort(labels, stable=True)
    sorted_labels = labels[order]
    starts = torch.searchsorted(sorted_labels, sorted_labels)
    rank = torch.arange(len(labels)) - starts
    return order[torch.argsort(rank, stable=True)][:count]
