"""Weights to use elsewhere, out of a finished run: the encoder for any loop, the tested classifier, and the
Mixer where there is one."""

import json
from dataclasses import asdict
from pathlib import Path

from torch import nn

from samix.contract import Averaged, Model, Paints
from samix.core.shapes import Stats
from samix.engine.averaging import innermost
from samix.engine.recipe import Recipe
from samix.methods.supervised import Supervised
from samix.nn.encoder import Encoder
from samix.runs.classifier import save_classifier
from samix.runs.files import AVERAGED, DESCRIPTION, ENCODER, MIXER, write_text
from samix.runs.for_timm import Seen
from samix.runs.weights import save_weights


def export_weights(
    folder: Path, recipe: Recipe, model: Model, classes: tuple[str, ...], stats: Stats
) -> None:
    """The online encoder with its network's own names; with labels, the classifier that was tested, and its
    average where there is one; the Mixer together with the encoder it reads."""
    described = {"encoder": asdict(recipe.encoder), "size": recipe.data.size, "classes": list(classes)}
    described |= {"mean": list(stats.mean), "std": list(stats.std)}
    save_weights(folder / ENCODER, model.encoder.network.state_dict(), described)
    method = innermost(model)
    if isinstance(method, Supervised) and isinstance(method.head, nn.Linear):
        seen = Seen(classes, stats, recipe.data.tested_size, recipe.data.test_short)
        save_classifier(folder, method.encoder, method.head, recipe.encoder, seen)
        if isinstance(model, Averaged):
            encoder, head = model.average.network.children()
            assert isinstance(encoder, Encoder) and isinstance(head, nn.Linear)  # as in the method
            save_classifier(folder, encoder, head, recipe.encoder, seen, place=AVERAGED)
    if isinstance(model, Paints):
        weights, described["mixer"] = model.mixer_weights()
        save_weights(folder / MIXER, weights, described)
    write_text(folder / DESCRIPTION, json.dumps(described, indent=2) + "\n")
