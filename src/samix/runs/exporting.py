"""Out of a finished run: its Mixer as a file for everybody, and the card that goes with it."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from samix.learned.frozen import FrozenMixer
from samix.runs.card import write_card
from samix.runs.files import EXPORT, MIXER, own_folder, write_text
from samix.runs.folder import Run, read_run
from samix.runs.hub import CARD
from samix.runs.mixer_file import build_policy, read_mixer_file, write_mixer_file
from samix.runs.samples import read_retention
from samix.version import __version__


class Exported(NamedTuple):
    """The files that an export wrote."""

    weights: Path
    card: Path


def export_mixer(
    run: Path,
    out: Path | None = None,
    *,
    half: bool = False,
    license: str = "unknown",
    size: int | None = None,
) -> Exported:
    """Writes the Mixer of a finished run and its card.

    `out` is a folder (mixer.safetensors, README.md; None: `export` in the run) or NAME.safetensors (NAME.md).
    `size` is the short side at which the Mixer will look at pictures; None: that of its training.
    """
    source = run / MIXER
    if not source.is_file():
        raise FileNotFoundError(
            f"{run} has no {MIXER}, which a run with a learned mixup writes when it ends: nothing to export."
        )
    told, file = read_run(run), read_mixer_file(source)
    about = describe_run(told) | {"license": license}
    file = file._replace(use=use_of(told), about=about, size=file.size if size is None else size)
    exported = targets(own_folder(run, EXPORT) if out is None else out)
    exported.weights.parent.mkdir(parents=True, exist_ok=True)
    write_mixer_file(exported.weights, file, half=half)
    written = read_mixer_file(exported.weights)
    write_text(
        exported.card,
        write_card(written, plain_use(build_policy(written, exported.weights)), exported.weights.name),
    )
    return exported


def targets(out: Path) -> Exported:
    """Where the two files go."""
    if out.suffix == ".safetensors":
        return Exported(out, out.with_suffix(".md"))
    if out.is_file():
        raise ValueError(f"--out must be a folder or end in .safetensors, got the file {out}.")
    return Exported(out / MIXER, out / CARD)


def use_of(run: Run) -> dict[str, Any]:
    """How the Mixer is best used: lam as it was trained with, masks adjusted by a shift."""
    alpha = run.config["mixup"].get("alpha")
    return {} if alpha is None else {"alpha": float(alpha)}


def plain_use(policy: FrozenMixer) -> dict[str, Any]:
    """The settings of a policy as plain values."""
    adjusting = asdict(policy.adjusting)
    return {"alpha": policy.alpha, "per_sample": policy.per_sample, "adjusting": adjusting}


def describe_run(run: Run) -> dict[str, Any]:
    """Where a Mixer comes from, as the run's own files tell it; what they do not tell is left out."""
    summary, start = run.summary or {}, run.start or {}
    pictures = summary.get("train_pictures", start.get("train_pictures"))
    epochs = len(run.rows)
    said = {
        "name": run.recipe,
        "mixup": run.mixup,
        "data": (run.config.get("data") or {}).get("name"),
        "pictures": pictures,
        "pictures_seen": None if pictures is None else pictures * epochs,
        "epochs": epochs,
        "seed": run.seed,
        "command": public_command(str(summary.get("command", start.get("command", "")))) or None,
        "commit": summary.get("commit", start.get("commit")),
        "version": (summary.get("versions") or {}).get("samix", __version__),
        "figures": figures_of(run) or None,
    }
    return {name: value for name, value in said.items() if value is not None}


def public_command(command: str) -> str:
    """The command without the places of files on this machine: of an absolute path its last part is left."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return shlex.join(public_word(word) for word in words)


def public_word(word: str) -> str:
    """'--data.root=/home/me/birds' becomes '--data.root=birds'."""
    option, equals, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
    return option + equals + (Path(value).name if value.startswith(("/", "~")) else value)


def figures_of(run: Run) -> dict[str, float]:
    """The Mixer's vital signs at the end, as far as the run measured them."""
    summary = run.summary or {}
    figures = {name: float(value) for name, value in (summary.get("mask") or {}).items()}
    last = run.rows[-1] if run.rows else {}
    figures |= {
        name: last[name] for name in ("gap", "deviation", "gamma") if name in last and name not in figures
    }
    rows = read_retention(run.path)
    for name, column in (("retention", "both"), ("weaker", "weaker")):
        if rows and all(column in row for row in rows):
            figures[name] = sum(row[column] for row in rows) / len(rows)
    if isinstance(summary.get("top1"), int | float):
        figures["top1"] = float(summary["top1"])
    return figures
