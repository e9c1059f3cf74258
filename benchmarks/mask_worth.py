"""What a Mixer's masks are worth to the network that judges them, and what the best masks would be worth.

python benchmarks/mask_worth.py runs/cifar10-long/samix/0           the table, 30 batches of training pictures
python benchmarks/mask_worth.py runs/cifar10-long/samix/0 --json    the same as JSON

Pictures are mixed with several kinds of masks for the same pairs and lam, and the momentum copy judges the
mixtures by both terms of SAMix Eq. (8), which no mask can bring below the entropy of lam:

learned    the Mixer's masks as the Mixer is trained
adjusted   the same with mean lam, as the encoder sees them
swapped    the masks of other pairs, with mean lam: is it the picture that counts, or any texture?
constant   mean lam everywhere, which is Mixup
searched   masks on the Mixer's grid with mean about lam, found by gradient descent for each pair and knowing
           both labels: not a policy, but how far the loss could fall
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from samix.commands.trained import load_trained, read_recipe
from samix.core.mixed import blend_pairs
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Labels, Mask
from samix.data.views import normalize, test_view
from samix.engine.recipe import policy_name
from samix.learned.losses import EtaBalanced, eta_balanced, mask_mean_loss
from samix.learned.mixer import adjust_mask, upsample_mask
from samix.learned.samix import SAMix
from samix.mixups.mixup import constant_mask

SEARCH_STEPS, SEARCH_RATE = 40, 0.3


class Worth(NamedTuple):
    """One line of the table, means over batches."""

    masks: str
    local: float
    """The local term of Eq. (8)."""
    globally: float
    """The global term."""
    gap: float
    """|mean(mask) - lam|."""
    deviation: float
    """The spatial deviation of a mask."""


def judge(model: SAMix, x: Images, y: Labels, pairing: Pairing, mask: Mask) -> EtaBalanced:
    """Both terms of Eq. (8) for the momentum copy's logits."""
    logits = model.momentum.logits(blend_pairs(x, pairing.index, mask))
    return eta_balanced(logits, y, pairing, model.settings.eta, model.settings.local)


def searched_masks(model: SAMix, x: Images, y: Labels, pairing: Pairing, grid: tuple[int, int]) -> Mask:
    """Masks with mean about lam for which descent finds a low loss, from constant ones."""
    size = x.shape[-2:]
    start = torch.logit(pairing.lam.view(-1, 1, 1, 1), eps=0.02)
    cells = start.expand(len(x), 1, *grid).clone().requires_grad_()
    optimizer = torch.optim.Adam([cells], lr=SEARCH_RATE)
    for _ in range(SEARCH_STEPS):
        mask = upsample_mask(cells.sigmoid(), size, "bilinear")
        gap = mask_mean_loss(mask, pairing.lam, margin=0.0)
        optimizer.zero_grad()
        (len(x) * (judge(model, x, y, pairing, mask).total + 2 * gap)).backward()
        optimizer.step()
    return upsample_mask(cells.detach().sigmoid(), size, "bilinear")


def kinds(model: SAMix, x: Images, y: Labels, pairing: Pairing) -> dict[str, Mask]:
    """Every kind of masks for one batch."""
    size = x.shape[-2:]
    with torch.no_grad():
        z = model.maps(x)
        learned = model.mixer(z, pairing, size)
    return {
        "learned": learned,
        "adjusted": adjust_mask(learned, pairing.lam),
        "swapped": adjust_mask(learned.roll(1, dims=0), pairing.lam),
        "constant": constant_mask(size, pairing.lam.expand(len(x))),
        "searched": searched_masks(model, x, y, pairing, z.shape[-2:]),
    }


def measure(model: SAMix, x: Images, y: Labels, batch: int, batches: int, seed: int) -> list[Worth]:
    """Means over random batches; the model in training mode, as when the Mixer learns."""
    torch.manual_seed(seed)
    found: dict[str, list[list[float]]] = {}
    for _ in range(batches):
        chosen = torch.randperm(len(x))[:batch]
        pairing = model.settings.draw(batch)
        for name, mask in kinds(model, x[chosen], y[chosen], pairing).items():
            with torch.no_grad():
                loss = judge(model, x[chosen], y[chosen], pairing, mask)
            gap = mask_mean_loss(mask, pairing.lam, margin=0.0)
            deviation = mask.std(dim=(1, 2, 3)).mean()
            found.setdefault(name, []).append([*map(float, (loss.local, loss.globally, gap, deviation))])
    return [Worth(name, *torch.tensor(rows).mean(dim=0).tolist()) for name, rows in found.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="What a Mixer's masks are worth to the momentum copy.")
    parser.add_argument("run", type=Path, help="run folder of a learned mixup")
    parser.add_argument("--batches", type=int, default=30, help="random batches of training pictures")
    parser.add_argument("--seed", type=int, default=0, help="of batches, pairs and lam")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    recipe = read_recipe(options.run)
    split, model, _ = load_trained(options.run, recipe)
    if not isinstance(model, SAMix):
        raise SystemExit(f"{options.run} learns no masks: its mixup is {policy_name(recipe)}.")
    x = normalize(test_view(recipe.data)(split.train.pictures), split.mean, split.std)
    rows = measure(model, x, split.train.labels, recipe.batch_size, options.batches, options.seed)
    if options.json:
        print(json.dumps({"rows": [row._asdict() for row in rows]}, indent=2))
        return
    table = Table("masks", "local", "global", "|mean - lam|", "deviation", title=str(options.run))
    for row in rows:
        table.add_row(row.masks, *(f"{value:.3f}" for value in row[1:]))
    Console().print(table)


if __name__ == "__main__":
    main()
