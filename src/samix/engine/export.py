"""Weights to use elsewhere: encoder.safetensors for any loop, mixer.safetensors for SAMix-P.

What their headers say of them is in config.json too, for those who read no safetensors.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from samix.engine.checkpoint import prefixed, save_weights, write_text
from samix.engine.config import Training
from samix.methods.base import method_of
from samix.methods.samix import LearnedMixing


def export_weights(folder: Path, recipe: Training, model: Any, classes: tuple[str, ...]) -> None:
    """The online encoder with its network's own names; the Mixer together with the encoder it reads."""
    described = {"encoder": asdict(recipe.encoder), "size": recipe.data.size, "classes": list(classes)}
    save_weights(folder / "encoder.safetensors", method_of(model).encoder.network.state_dict(), described)
    if isinstance(model, LearnedMixing):
        pair = prefixed("mixer", model.mixer) | prefixed("encoder", model.read_encoder.network)
        described["mixer"] = asdict(model.settings.mixer)
        save_weights(folder / "mixer.safetensors", pair, described)
    write_text(folder / "config.json", json.dumps(described, indent=2) + "\n")
