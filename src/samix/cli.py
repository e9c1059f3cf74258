"""The command line. Each command lives in `samix.commands` and is imported when it is called."""

import importlib
import os
import sys
import traceback
import warnings
from pathlib import Path

from samix.core.extras import needs_train
from samix.core.words import printable, suggest
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
    "data": "check a copy of a data set: numbers, classes, files that cannot be read",
    "recipes": "list the recipes",
    "bench": "train all rows of a family with several seeds and compare them",
    "report": "compare runs: a table here, and a page with curves and pictures",
}

LOST = ("/gloo/", "NCCL", "ProcessGroup")
"""Words by which torch's means of communication complain of a process that does not answer any more."""

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


def is_own(filename: str) -> bool:
    """Whether a source file is one of samix."""
    return Path(filename).is_relative_to(Path(__file__).parent)


def format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """samix's own warnings as one sentence; others as Python writes them."""
    if is_own(filename):
        return f"samix: {printable(str(message))}\n"
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
    if any(words in text for words in LOST):
        return (
            "another process of this training has ended. The same command goes on from the last checkpoint."
        )
    return text


def hint(error: Exception) -> str:
    """How to see where an error comes from, if samix did not raise it with a sentence of its own."""
    frames = traceback.extract_tb(error.__traceback__)
    told = (frames and is_own(frames[-1].filename)) or message(error) != str(error).strip()
    return "" if told else "\n(SAMIX_DEBUG=1 shows where.)"


def tell(error: Exception) -> None:
    """Says what went wrong, once for all processes that train together."""
    together = importlib.import_module("samix.core.distributed")
    if together.first_to_fail():
        print(f"samix: {printable(message(error))}{hint(error)}", file=sys.stderr, flush=True)
    together.leave_last()


def run(words: list[str]) -> int:
    """Runs one command line and returns the exit code; errors of the user's making are one sentence."""
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
        with needs_train(f"samix {words[0]}"):
            code = importlib.import_module(f"samix.commands.{words[0]}").run(words[1:])
        importlib.import_module("samix.core.distributed").leave()
    except BrokenPipeError:  # an OSError, but nobody's mistake: see `main`
        raise
    except (ValueError, OSError, ArithmeticError, RuntimeError, ImportError) as error:
        if os.environ.get("SAMIX_DEBUG"):
            raise
        tell(error)
        return 2
    except KeyboardInterrupt:
        if importlib.import_module("samix.core.distributed").rank() == 0:
            print("samix: interrupted; the same command goes on from the last checkpoint.", file=sys.stderr)
        return 130
    return code or 0
