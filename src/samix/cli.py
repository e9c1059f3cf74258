"""The command line. Each command lives in `samix.commands` and is imported when it is called."""

import importlib
import os
import sys
import warnings
from pathlib import Path

from samix.version import __version__

COMMANDS = {
    "demo": "train plain, Mixup, CutMix and SAMix on the embedded set and write a page (minutes)",
    "train": "train a recipe in a run folder; the same command again goes on where it stopped",
    "eval": "test a trained run",
    "predict": "classify pictures of yours with a trained run",
    "pretrain": "learn an encoder without labels, with any method and mixup",
    "knn": "k-NN accuracy of a run's encoder",
    "linear": "linear probe of a run's encoder",
    "mixer": "train a Mixer for pictures of yours in minutes and export it",
    "show": "draw mixed images and their masks, of a run or of two pictures of yours",
    "export": "write a run's Mixer as a file for everybody, with a model card",
    "push": "put an exported Mixer on the Hugging Face Hub",
    "recipes": "list the recipes",
    "report": "compare runs: a table here, and a page with curves and pictures",
}

HELP = f"""samix {__version__} learns how to mix images (SAMix, arXiv 2111.15454).

usage: samix COMMAND ...        samix COMMAND --help explains a command

{chr(10).join(f"  {name:<9} {what}" for name, what in COMMANDS.items())}

first steps:
  samix demo                                  no data needed
  samix train demo/samix                      one row of it
  samix train cifar10-small --mixup cutmix    a mixup by name
  samix pretrain ssl-demo --mixup samix-i     without labels
  samix mixer --data.root PICTURES            a Mixer for your own pictures
  samix report runs/demo                      table and page
"""


def format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """samix's own warnings as one sentence; others as Python writes them."""
    if Path(filename).is_relative_to(Path(__file__).parent):
        return f"samix: {message}\n"
    return f"{filename}:{lineno}: {category.__name__}: {message}\n"


def main() -> None:
    """Entry point of the `samix` program."""
    warnings.formatwarning = format_warning
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of `samix train --help | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at exit
        code = 0
    sys.exit(code)


def message(error: Exception) -> str:
    """What the error says; of one that a loading worker passed on with its traceback, the sentence itself."""
    text = str(error).strip()
    if "in DataLoader worker" in text:
        return text.splitlines()[-1].partition(": ")[2]
    return text


def run(words: list[str]) -> int:
    """Runs one command line and returns the exit code; errors of the user's making are one sentence."""
    from samix.core.words import suggest

    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP)
        return 0
    if words[0] == "--version":
        print(f"samix {__version__}")
        return 0
    try:
        if words[0] not in COMMANDS:
            raise ValueError(f"unknown command {suggest(words[0], COMMANDS)}")
        importlib.import_module(f"samix.commands.{words[0]}").run(words[1:])
        importlib.import_module("samix.core.distributed").leave()
    except BrokenPipeError:  # an OSError, but nobody's mistake: see `main`
        raise
    except (ValueError, OSError, ArithmeticError, RuntimeError, ImportError) as error:
        if os.environ.get("SAMIX_DEBUG"):
            raise
        print(f"samix: {message(error)}\n(SAMIX_DEBUG=1 shows where.)", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("samix: interrupted; the same command goes on from the last checkpoint.", file=sys.stderr)
        return 130
    return 0
