"""samix show RUN, or samix show --images A B: a picture of mixed images and their masks."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torchvision.transforms import v2

import samix  # noqa: F401  (prepares torchvision)
from samix.data.folders import read_picture
from samix.mixups import MIXUPS
from samix.pairing import Pairing
from samix.random import seeded
from samix.report import Samples, comparison_figure, draw_samples, save_png

LAMS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)


def run(words: list[str]) -> None:
    """Draws a run's samples, or two pictures mixed by every hand-made policy."""
    parser = argparse.ArgumentParser(
        prog="samix show",
        description="Draw mixed images and their masks over the lam range: of a trained run, or of two "
        "pictures of yours with every hand-made policy.",
    )
    parser.add_argument("run", type=Path, nargs="?", help="run folder")
    parser.add_argument("--images", type=Path, nargs=2, metavar=("A", "B"), help="two picture files")
    parser.add_argument("--size", type=int, default=128, help="side of the square that A and B are cut to")
    parser.add_argument("--seed", type=int, default=0, help="seed of random masks")
    parser.add_argument("--out", type=Path, default=Path("mixed.png"), help="the picture, with --images")
    options = parser.parse_args(words)
    if (options.run is None) == (options.images is None):
        raise ValueError("name a run folder or --images A B, one of them.")
    if options.run is not None:
        print(draw_samples(options.run))
        return
    pictures = [square(read_picture(path), options.size) for path in options.images]
    mixed = {name: mix_two(name, pictures, options.seed) for name in MIXUPS}
    figure = comparison_figure(mixed, {name: name for name in MIXUPS}, most=len(LAMS))
    print(save_png(figure, options.out))


def square(picture: torch.Tensor, size: int) -> torch.Tensor:
    """The centre of a picture as a square of the given side."""
    return v2.Compose([v2.Resize(size, antialias=True), v2.CenterCrop(size)])(picture)


def mix_two(name: str, pictures: list[torch.Tensor], seed: int) -> Samples:
    """Two pictures mixed by a policy over the lam range, as samples to draw."""
    x = torch.stack(pictures).float()
    index = torch.tensor([1, 0])
    with seeded(seed):
        mixed = [MIXUPS[name]()(x, Pairing(torch.tensor([lam]), index)) for lam in LAMS]
    return Samples(
        first=pictures[0][None].numpy(),
        partner=pictures[1][None].numpy(),
        lams=np.array(LAMS, dtype=np.float32),
        masks=np.stack([m.mask[:1].expand(1, 1, *x.shape[-2:]).numpy() for m in mixed]),
        mixed=np.stack([m.x[:1].round().to(torch.uint8).numpy() for m in mixed]),
    )
