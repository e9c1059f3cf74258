"""What would the best masks be worth? Few photographs of Oxford Pets, mixed along the animals' true outlines.

python benchmarks/true_masks.py --seeds 0 1 2       validation pictures, results/true_masks.csv
python benchmarks/true_masks.py --rows plain true   two rows of it

Rows train as pets-lite0 does (docs/few_photos.md): plain, CutMix, the Mixer `photos`, and

true         masks of mean lam that show each animal where it is: the smoothed difference of both outlines.
             No Mixer can know more about where the animals are
true-shown   the same, but labels weigh what shows of each animal instead of lam

Data: oxford_pets.npz and oxford_pets_masks.npz in --root, $SAMIX_DATA or ./data.
"""

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from retention import read_masks
from torch import Tensor
from torch.nn import functional as F

import samix
from samix.commands.suites.table import cell, merge_table
from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing, draw_pairing
from samix.core.shapes import Images, Labels, Mask
from samix.data.crops import random_resized_crop
from samix.data.datasets import balanced_positions, load_data
from samix.data.packs import find_root, read_pack
from samix.data.views import normalize, test_view
from samix.engine.memory import keep_freed_memory
from samix.engine.optim import build_optimizer, learning_scales, set_learning_rates
from samix.evaluate.accuracy import Score, count, score, total
from samix.evaluate.retention import kept_share
from samix.learned.shifting import balance
from samix.methods.supervised import Supervised
from samix.mixups import CutMix, Hints
from samix.nn.pretrained import LITE0_STATS
from samix.recipes import PETS_LITE0
from samix.runs.provenance import commit

PACKS = ("oxford_pets.npz", "oxford_pets_masks.npz")
RECIPE = PETS_LITE0.rows["plain"]
LOOK = PETS_LITE0.rows["samix-p"].mixup.size  # type: ignore[attr-defined]
ROWS = ("plain", "cutmix", "photos", "true", "true-shown")
COLUMNS = ("row", "seed", *Score._fields, "pictures", "commit")
TABLE = Path("results") / "true_masks.csv"
SMOOTH, SHARPNESS = 9, 4.0
"""Side in pixels that outlines are smoothed over, and the logit where one animal is and the other is not."""


class Batch(NamedTuple):
    """Crops of photographs, with the animals in them."""

    pixels: Images
    animals: Mask
    y: Labels


def outlined_pictures(root: Path) -> tuple[list[Tensor], Labels]:
    """The training pictures of pets-lite0 as [4, H, W]: colours, and 255 where the animal is."""
    pictures, labels, _ = read_pack(root / PACKS[0])["train"]
    masks, data = read_masks(root / PACKS[1], "train"), RECIPE.data
    assert data.train_pictures is not None
    chosen = balanced_positions(labels, data.train_pictures, data.subset_seed, "train")
    found = []
    for place in chosen.tolist():
        picture = pictures[place]
        with Image.open(io.BytesIO(masks[place])) as image:
            outline = np.array(image.convert("L").resize((picture.shape[2], picture.shape[1])))
        found.append(torch.cat([picture, torch.from_numpy(outline)[None]]))
    return found, labels[chosen]


def batches(pictures: list[Tensor], labels: Labels) -> Iterator[Batch]:
    """One epoch of random crops; what does not fill a batch is left out, as in training."""
    for chosen in torch.randperm(len(pictures)).split(RECIPE.batch_size):
        if len(chosen) == RECIPE.batch_size:
            crops = [pictures[i] for i in chosen.tolist()]
            x = random_resized_crop(crops, RECIPE.data.size, RECIPE.data.min_scale, flip_prob=0.5)
            yield Batch(x[:, :3], x[:, 3:], labels[chosen])


def true_mask(animals: Mask, pairing: Pairing) -> Mask:
    """Masks of mean lam: towards the first picture where its animal is, away where the partner's is."""
    smooth = F.avg_pool2d(animals, SMOOTH, stride=1, padding=SMOOTH // 2, count_include_pad=False)
    return balance(SHARPNESS * (smooth - smooth[pairing.index]), pairing.lam)


def shown_lam(mask: Mask, animals: Mask, pairing: Pairing) -> Tensor:
    """a / (a + b), a and b the shares of the two animals that show; lam where a crop has no animal."""
    seen = animals > 0.5
    safe = torch.where(seen.any(dim=(1, 2, 3), keepdim=True), seen, torch.ones_like(seen))
    first, second = kept_share(mask, safe), kept_share(1 - mask, safe[pairing.index])
    return first / (first + second)


def mix(row: str, batch: Batch, x: Images, mixer: samix.FrozenMixer) -> Mixed:
    """The batch as this row mixes it, lam ~ Beta(1, 1) per pair."""
    pairing = draw_pairing(len(x), alpha=1.0, per_sample=True)
    if row in ("cutmix", "photos"):
        policy = CutMix(box="paper") if row == "cutmix" else mixer
        return policy(x, pairing, Hints(pixels=batch.pixels))
    mask = true_mask(batch.animals, pairing)
    lam = shown_lam(mask, batch.animals, pairing) if row == "true-shown" else pairing.lam
    return Mixed(blend_pairs(x, pairing.index, mask), mask, Pairing(lam, pairing.index))


def train(row: str, seed: int, pictures: list[Tensor], labels: Labels, classes: int) -> Supervised:
    """The classifier after as many epochs as the recipe has."""
    torch.manual_seed(seed)
    method = RECIPE.build(classes, LITE0_STATS)
    assert isinstance(method, Supervised)
    method.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    groups = method.parameter_groups()
    scales = learning_scales(groups["encoder"], method.encoder.network, RECIPE.optimizer)
    optimizer = build_optimizer(groups, RECIPE.optimizer, scales=scales)
    mixer = replace(samix.load_mixer("photos"), alpha=1.0)
    mixer.painter.size = LOOK
    steps, done = RECIPE.epochs * (len(pictures) // RECIPE.batch_size), 0
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in LITE0_STATS)
    for _ in range(RECIPE.epochs):
        for batch in batches(pictures, labels):
            progress = done / steps
            set_learning_rates(optimizer, RECIPE.optimizer, progress, RECIPE.epochs)
            x = ((batch.pixels - mean) / std).contiguous(memory_format=torch.channels_last)
            if row == "plain" or not RECIPE.objective.mixes_at(progress):
                loss = method(x, batch.y).total
            else:
                mixed = mix(row, batch, x, mixer)
                loss = method.mixed_loss(method.logits(mixed.x), mixed, x, batch.y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            done += 1
    return method.eval()


@torch.no_grad()
def evaluate(method: Supervised, x: Images, y: Labels) -> Score:
    """Accuracy, calibration and cross-entropy."""
    parts = zip(x.split(100), y.split(100), strict=True)
    return score(total(count(method.logits(part), labels) for part, labels in parts))


def main(words: Sequence[str] | None = None) -> int:
    """Trains, tests on validation pictures, writes the table after every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--root", help="folder of the packs")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(words)
    keep_freed_memory()
    root = find_root(options.root, "oxford-pets", PACKS[1:], f"the packs {' and '.join(PACKS)}")
    pictures, labels = outlined_pictures(root)
    test = load_data(replace(RECIPE.data, root=str(root))).test
    x = normalize(test_view(RECIPE.data)(test.pictures), *LITE0_STATS)
    for seed in options.seeds:
        for row in options.rows:
            found = evaluate(train(row, seed, pictures, labels, len(test.classes)), x, test.labels)
            print(f"{row} seed {seed}: top-1 {found.top1:.2f} %, cross-entropy {found.cross_entropy:.3f}")
            line = line_of(row, seed, found, len(test.labels))
            merge_table(options.table, COLUMNS, [line], ("row", "seed"))
    return 0


def line_of(row: str, seed: int, found: Score, pictures: int) -> dict[str, str]:
    """One line of the table."""
    values = {"row": row, "seed": seed, **found._asdict(), "pictures": pictures, "commit": commit()}
    return {name: cell(values[name]) for name in COLUMNS}


if __name__ == "__main__":
    sys.exit(main())
