"""The model card of an exported Mixer: Markdown with the header that the Hugging Face Hub reads."""

import json
import re
from typing import Any

import yaml

from samix.runs.mixer_file import MixerFile

TAGS = ("samix", "mixup", "data-augmentation", "image-classification")
FIGURES = {
    "correlation": "correlation of mean(mask) with lam, before adjusting",
    "gap": "distance of mean(mask) from lam, before adjusting",
    "deviation": "spatial deviation of a mask; 0 is plain Mixup",
    "evidence": "share of both pictures' evidence (where the network's last map is strong) kept; blind: .5",
    "gamma": "strength of the lam encoding",
    "retention": "share of both objects' pixels that survives (embedded set); Mixup has .5",
    "weaker": "share of the object that survives less",
    "top1": "top-1 accuracy of the network that was trained along, %",
}
"""What a card says of each figure that a run may have."""


def escape(text: object) -> str:
    """Any value as one line of Markdown that shows it and does nothing else."""
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", line)


def code(text: object) -> str:
    """Any value as one line of code, whatever backticks it has."""
    line = " ".join(str(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if "`" in line or not line else ""
    return f"{fence}{space}{line}{space}{fence}"


def settings(values: dict[str, Any]) -> str:
    """Settings as one line of JSON."""
    return code(json.dumps(values, default=str))


def loading(source: str) -> str:
    """The call that loads a Mixer."""
    return f"load_mixer({json.dumps(source)})"


def write_card(file: MixerFile, use: dict[str, Any], source: str) -> str:
    """What the Mixer is, how it is used, what it was trained on and what came out.

    `source` is what readers are to give `load_mixer`.
    """
    about = file.about

    def said(name: str) -> str:
        return escape(about.get(name, "unknown"))

    licence = " ".join(str(about.get("license", "unknown")).split())
    head = {"license": licence, "library_name": "samix", "tags": list(TAGS)}
    figures = {name: value for name, value in about.get("figures", {}).items() if name in FIGURES}
    encoder = f"{file.network.name}, up to the layer that the Mixer reads"
    held = "in the file" if file.weights is None else f"from {code(file.weights)}, not in the file"
    lines = [
        "---",
        yaml.safe_dump(head, sort_keys=False).strip(),
        "---",
        "",
        f"# A Mixer of samix: {said('name')}",
        "",
        "A trained policy for mixing pictures (SAMix, arXiv 2111.15454): it sees two pictures and lam and",
        "paints which pixels come from which. It is frozen, and needs no labels and no network of yours.",
        "",
        "```python",
        "import samix",
        f"mix = samix.Mix(samix.{loading(source)}, classes=10, mean=MEAN, std=STD)",
        "x, y = mix(x, y)  # in your loop; MEAN and STD are your normalisation, none for pixels in [0, 1]",
        "```",
        "",
        "## Trained on",
        "",
        f"- data: {said('data')}, {said('pictures')} pictures, {said('pictures_seen')} seen",
        f"- command: {code(about.get('command', 'unknown'))}",
        f"- samix {said('version')}, commit {code(about.get('commit') or 'unknown')}",
        "",
        "## Settings",
        "",
        f"- encoder: {escape(encoder)}; its weights are {held}",
        f"- looks at pictures with a short side of {file.size} px; masks have the pictures' own size",
        f"- Mixer: {settings(vars(file.mixer))}",
        f"- use: {settings(use)}",
        "",
        "## Figures",
        "",
        *figure_table(figures),
        "",
        "## Licence",
        "",
        f"The weights: {escape(licence)}. samix itself is Apache-2.0. The pictures that it was "
        "trained on have terms of their own.",
        "",
    ]
    return "\n".join(lines)


def figure_table(figures: dict[str, Any]) -> list[str]:
    """The lines of the table of figures, or a sentence."""
    if not figures:
        return ["The run measured none."]
    rows = [f"| {FIGURES[name]} | {escape(f'{value:.3g}')} |" for name, value in figures.items()]
    return ["| what | value |", "|---|---|", *rows]
