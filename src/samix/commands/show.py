"""samix show RUN, or samix show --images A B: a picture of mixed images and their masks."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms import v2

from samix.commands.trained import check_folder
from samix.core.pairing import Pairing
from samix.core.seeds import seeded
from samix.core.words import suggest
from samix.data import read_picture
from samix.mixups import MIXUPS, Hints
from samix.mixups.saliency import fine_grained_saliency
from samix.report import Samples, comparison_figure, draw_samples, save_png

LAMS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
TEACHER_SIZE = 32


def run(words: list[str]) -> None:
    """Draws a run's samples, or two pictures mixed by every hand-made policy."""
    parser = argparse.ArgumentParser(
        prog="samix show",
        description="Draw mixed images and their masks over the lam range: of a trained run, or of two "
        "pictures of yours with every hand-made policy (rows) and several lam (columns).",
        epilog="With --images there is no network to ask. Policies that need one see the pictures' own "
        "saliency instead, and those that mix hidden layers are shown as if the picture were the layer.",
    )
    parser.add_argument("run", type=Path, nargs="?", help="run folder")
    parser.add_argument("--images", type=Path, nargs=2, metavar=("A", "B"), help="two picture files")
    parser.add_argument("--mixups", nargs="+", metavar="NAME", help="only these policies (default: all)")
    parser.add_argument("--size", type=int, help="side of the square that A and B are cut to (default: 128)")
    parser.add_argument("--seed", type=int, help="seed of random masks (default: 0)")
    parser.add_argument("--out", type=Path, help="the picture, with --images (default: mixed.png)")
    options = parser.parse_args(words)
    if (options.run is None) == (options.images is None):
        raise ValueError("name a run folder or --images A B, one of them.")
    if options.run is not None:
        print(draw_run(options))
        return
    size, out = 128 if options.size is None else options.size, options.out or Path("mixed.png")
    if size < 1:
        raise ValueError(f"--size must be at least 1, got {size}.")
    if out.suffix.lower() != ".png":
        raise ValueError(f"--out must end in .png, got {out}.")
    names = options.mixups or list(MIXUPS)
    for name in names:
        if name not in MIXUPS:
            raise ValueError(f"unknown mixup {suggest(name, MIXUPS)}")
    pictures = [cut_square(read_picture(path), size) for path in options.images]
    mixed = {name: mix_two(name, pictures, options.seed or 0) for name in names}
    figure = comparison_figure(mixed, {name: name for name in names}, most=len(LAMS))
    print(save_png(figure, out))


def draw_run(options: argparse.Namespace) -> Path:
    """The picture of a run's samples, which takes no further options."""
    for name in ("mixups", "size", "seed", "out"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} goes with --images; a run's picture lies in its folder, as it is.")
    check_folder(options.run)
    return draw_samples(options.run)


def cut_square(picture: Tensor, size: int) -> Tensor:
    """The centre of a picture as a square of the given side."""
    return v2.Compose([v2.Resize(size, antialias=True), v2.CenterCrop(size)])(picture)


def mix_two(name: str, pictures: list[Tensor], seed: int) -> Samples:
    """Two pictures mixed by a policy over the lam range, as samples to draw."""
    x = torch.stack(pictures).float() / 255
    index, policy, hints = torch.tensor([1, 0]), MIXUPS[name](), own_hints(torch.stack(pictures))
    with seeded(seed):
        mixed = [policy.picture(x, Pairing(torch.tensor([lam]), index), hints) for lam in LAMS]
    return Samples(
        first=pictures[0][None].numpy(),
        partner=pictures[1][None].numpy(),
        lams=np.array(LAMS, dtype=np.float32),
        masks=np.stack([m.mask[:1].expand(1, 1, *x.shape[-2:]).numpy() for m in mixed]),
        mixed=np.stack([(255 * m.x[:1]).round().clamp(0, 255).to(torch.uint8).numpy() for m in mixed]),
    )


def own_hints(pictures: Tensor) -> Hints:
    """What a network would supply, from the pictures alone: their saliency, and a teacher that compares."""
    x = pictures.float() / 255
    fine = fine_grained_saliency(pictures).float()
    saliency = F.avg_pool2d(fine[:, None], 9, stride=1, padding=4)[:, 0] + 1e-3
    cells = F.adaptive_avg_pool2d(saliency, 8)
    known = thumbnails(x)

    def teacher(images: Tensor) -> Tensor:
        """One class per picture: minus the squared distance to it, weighed by its saliency."""
        weight = F.adaptive_avg_pool2d(saliency, TEACHER_SIZE)[:, None]
        weight = weight / weight.sum(dim=(1, 2, 3), keepdim=True)
        distance = (thumbnails(images)[:, None] - known[None]).square() * weight[None]
        return -20 * distance.sum(dim=(2, 3, 4))

    return Hints(x, saliency, cells / cells.sum(dim=(1, 2), keepdim=True), cells[:, None], teacher)


def thumbnails(images: Tensor) -> Tensor:
    """Images at the size at which the teacher compares them."""
    return F.adaptive_avg_pool2d(images, TEACHER_SIZE)
