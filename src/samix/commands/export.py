"""samix export RUN: the run's Mixer as a file for everybody, with a model card."""

import argparse
from pathlib import Path

from samix.commands.trained import check_folder
from samix.runs.exporting import export_mixer


def run(words: list[str]) -> None:
    """Writes the Mixer and its card, and prints where they are."""
    parser = argparse.ArgumentParser(
        prog="samix export",
        description="Write the frozen Mixer of a finished run as one safetensors file, with the encoder up "
        "to the layer that the Mixer reads, and a model card beside it.",
        epilog="Use it: samix.Mix(samix.load_mixer(FILE), classes=N). Share it: samix push.",
    )
    parser.add_argument("run", type=Path, help="run folder with a learned mixup")
    parser.add_argument("--out", type=Path, help="a folder, or NAME.safetensors (default: RUN/export)")
    parser.add_argument("--half", action="store_true", help="store numbers in 16 bits: half the size")
    parser.add_argument("--license", default="unknown", help="the weights' licence, as the Hub calls it")
    parser.add_argument(
        "--size",
        type=int,
        help="short side at which the Mixer looks at pictures: larger finds objects better and takes longer "
        "(default: that of its training)",
    )
    options = parser.parse_args(words)
    check_folder(options.run)
    if options.size is not None and options.size < 1:
        raise ValueError(f"--size must be at least 1, got {options.size}.")
    for path in export_mixer(
        options.run, options.out, half=options.half, license=options.license, size=options.size
    ):
        print(f"{path} ({path.stat().st_size / 1000:.1f} kB)")
