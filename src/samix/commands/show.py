"""samix show RUN, or samix show [RUN] --images A B: a picture of mixed images and their masks."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms import v2

from samix import load_mixer
from samix.commands.own_mixer import mixer_of_run
from samix.commands.trained import check_folder
from samix.core.pairing import Pairing
from samix.core.seeds import seeded
from samix.core.words import suggest
from samix.data import read_picture
from samix.learned import FrozenMixer
from samix.mixups import MIXUPS, Hints
from samix.mixups.base import Policy
from samix.mixups.saliency import fine_grained_saliency
from samix.report import Samples, comparison_figure, draw_samples, pair_figure, save_png
from samix.runs.files import CONFIG
from samix.runs.folder import read_run

LAMS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
MIXER_LAMS = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Beside a Mixer: fewer and larger tiles, none where nothing is mixed."""
TEACHER_SIZE = 32


def run(words: list[str]) -> None:
    """Draws a run's samples, or two pictures mixed by a Mixer, by hand-made policies, or by both."""
    parser = argparse.ArgumentParser(
        prog="samix show",
        usage="samix show RUN\n       samix show RUN --images A B [--mixups NAME ...]\n"
        "       samix show --images A B [--mixer RUN] [--mixups NAME ...]",
        description="Draw mixed images and their masks over the lam range: of a trained run; of two pictures "
        "of yours with the Mixer of a run; or of the two with every hand-made policy (rows).",
        epilog="Without a network to ask, hand-made policies that need one see the pictures' own saliency "
        "instead, and those that mix hidden layers are shown as if the picture were the layer.",
    )
    parser.add_argument("run", type=Path, nargs="?", help="run folder")
    parser.add_argument(
        "--images", type=Path, nargs=2, metavar=("A", "B"),
        help="two picture files: --images A B; with a run folder they are mixed as that run mixes",
    )  # fmt: skip
    parser.add_argument("--mixer", help="a run with a learned mixup, or its mixer.safetensors, as SAMix-P")
    parser.add_argument(
        "--mixups",
        nargs="+",
        metavar="NAME",
        help="these hand-made policies (default: all, or none beside a Mixer)",
    )
    parser.add_argument(
        "--size", type=int, help="side of the square that A and B are cut to (default: 128, with a Mixer 224)"
    )
    parser.add_argument("--seed", type=int, help="seed of random masks (default: 0)")
    parser.add_argument("--out", type=Path, help="the picture, with --images (default: mixed.png)")
    options = parser.parse_args(words)
    if options.images is None:
        print(draw_run(options))
        return
    out = options.out or Path("mixed.png")
    if out.suffix.lower() != ".png":
        raise ValueError(f"--out must end in .png, got {out}.")
    print(save_png(draw_pictures(options), out))


def draw_run(options: argparse.Namespace) -> Path:
    """The picture of a run's samples, which takes no further options."""
    if options.run is None:
        raise ValueError("name a run folder or --images A B, or both.")
    for name in ("mixer", "mixups", "size", "seed", "out"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} goes with --images; a run's picture lies in its folder, as it is.")
    check_folder(options.run)
    return draw_samples(options.run)


def draw_pictures(options: argparse.Namespace) -> Figure:
    """Two pictures mixed by everything that the options name."""
    policies = choose_policies(options)
    learned = any(isinstance(policy, FrozenMixer) for policy in policies.values())
    size = (224 if learned else 128) if options.size is None else options.size
    if size < 1:
        raise ValueError(f"--size must be at least 1, got {size}.")
    pictures = torch.stack([cut_square(read_picture(path), size) for path in options.images])
    only_pixels = all(set(policy.needs) <= {"pixels"} for policy in policies.values())
    hints = Hints(pictures.float() / 255) if only_pixels else own_hints(pictures)
    lams = MIXER_LAMS if learned else LAMS
    rows = {
        name: mix_two(policy, pictures, hints, lams, options.seed or 0) for name, policy in policies.items()
    }
    if learned and len(rows) == 1:
        ((name, samples),) = rows.items()
        return pair_figure(samples, name)
    colours = {name: "samix" if isinstance(policies[name], FrozenMixer) else name for name in rows}
    return comparison_figure(rows, colours, most=len(lams), inches=1.2 if learned else 0.66)


def choose_policies(options: argparse.Namespace) -> dict[str, Policy]:
    """What mixes the pictures, by the name that its row gets: Mixers first."""
    policies: dict[str, Policy] = {}
    if options.run is not None:
        check_folder(options.run)
        policies[read_run(options.run).recipe] = mixer_of_run(options.run)
    if options.mixer is not None:
        policies[name_of_mixer(options.mixer)] = load_mixer(options.mixer)
    for name in options.mixups or ([] if policies else list(MIXUPS)):
        if name not in MIXUPS:
            raise ValueError(f"unknown mixup {suggest(name, MIXUPS)}")
        policies[name] = MIXUPS[name]()
    return policies


def name_of_mixer(source: str) -> str:
    """What a Mixer's row is called: the recipe of a run, with the kind of use, or what was asked for."""
    run = Path(source) if Path(source).is_dir() else Path(source).parent
    return f"{read_run(run).recipe}, SAMix-P" if (run / CONFIG).is_file() else source


def cut_square(picture: Tensor, size: int) -> Tensor:
    """The centre of a picture as a square of the given side."""
    return v2.Compose([v2.Resize(size, antialias=True), v2.CenterCrop(size)])(picture)


def mix_two(policy: Policy, pictures: Tensor, hints: Hints, lams: Sequence[float], seed: int) -> Samples:
    """Two pictures uint8 [2, 3, S, S] mixed by a policy over the lam range, as samples to draw."""
    x, index = pictures.float() / 255, torch.tensor([1, 0])
    with seeded(seed):
        mixed = [policy.picture(x, Pairing(torch.tensor([lam]), index), hints) for lam in lams]
    return Samples(
        first=pictures[:1].numpy(),
        partner=pictures[1:].numpy(),
        lams=np.array(lams, dtype=np.float32),
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

    attention = cells / cells.sum(dim=(1, 2), keepdim=True)
    labels = torch.arange(len(x))  # one class a picture, as the teacher has it
    return Hints(x, saliency, attention, cells[:, None], teacher, labels, activation=cells)


def thumbnails(images: Tensor) -> Tensor:
    """Images at the size at which the teacher compares them."""
    return F.adaptive_avg_pool2d(images, TEACHER_SIZE)
