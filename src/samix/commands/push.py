"""samix push FILE_OR_FOLDER owner/name: an exported Mixer on the Hugging Face Hub."""

import argparse
from pathlib import Path

from samix.runs.hub import PREFIX, find_pair, push_mixer
from samix.runs.mixer_file import build_policy, read_mixer_file


def run(words: list[str]) -> None:
    """Checks the file, uploads it with its card, and prints the page's address."""
    parser = argparse.ArgumentParser(
        prog="samix push",
        description="Upload an exported Mixer and its card, and nothing else, to the Hugging Face Hub. Log "
        "in first: hf auth login.",
    )
    parser.add_argument("source", type=Path, help="what `samix export` wrote: a folder, or NAME.safetensors")
    parser.add_argument("repo", metavar="owner/name", help="the repository; made if there is none")
    parser.add_argument("--private", action="store_true", help="a new repository is for you alone")
    options = parser.parse_args(words)
    weights, _ = find_pair(options.source)
    build_policy(read_mixer_file(weights), weights)  # nobody is to download what cannot be loaded
    print(push_mixer(options.source, options.repo, private=options.private))
    print(f"use it: samix.load_mixer('{PREFIX}{options.repo}')")
