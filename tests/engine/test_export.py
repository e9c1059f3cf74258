"""Exported weights: into our encoders, into plain timm models, and back into a Mixer."""

import json
from dataclasses import asdict
from pathlib import Path

import timm
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from samix.core.pairing import Pairing
from samix.core.shapes import Stats
from samix.engine.export import export_weights
from samix.learned.mixer import MixerConfig
from samix.nn.zoo import Network, build_encoder

X = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))

STATS = Stats((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))


def describe(path: Path) -> dict:
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["samix"])


def test_value_encoder_of_a_run_loads_into_our_encoder(finished):
    path = finished / "encoder.safetensors"
    about = describe(path)
    assert about["encoder"] == asdict(Network(width=4)) and about["encoder"]["name"] == "small-resnet"
    assert about["size"] == 16 and len(about["classes"]) == 12
    encoder = build_encoder(about["encoder"]["name"], width=about["encoder"]["width"])
    encoder.network.load_state_dict(load_file(path))
    saved = torch.load(finished / "last.ckpt", weights_only=True)["model"]
    for name, value in encoder.network.state_dict().items():
        assert torch.equal(value, saved[f"method.encoder.network.{name}"])


def test_value_config_json_says_what_the_headers_say(finished, tiny, tmp_path, read_json):
    assert read_json(finished / "config.json") == describe(finished / "mixer.safetensors")
    recipe = tiny("cutmix")
    export_weights(tmp_path, recipe, recipe.build(3), ("a", "b", "c"), STATS)
    assert read_json(tmp_path / "config.json") == describe(tmp_path / "encoder.safetensors")


def test_value_encoder_loads_into_a_plain_timm_model(tiny, tmp_path):
    recipe = tiny("cutmix", encoder=Network(name="resnet18"))
    model = recipe.build(3).eval()
    export_weights(tmp_path, recipe, model, ("a", "b", "c"), STATS)
    plain = timm.create_model("resnet18", num_classes=0).eval()
    plain.load_state_dict(load_file(tmp_path / "encoder.safetensors"))
    with torch.no_grad():
        assert torch.equal(plain(X), model.method.encoder(X))
    assert not (tmp_path / "mixer.safetensors").exists()


def test_value_mixer_and_the_encoder_it_reads_paint_the_same_masks(tiny, tmp_path):
    recipe = tiny()
    model = recipe.build(12).eval()
    export_weights(tmp_path, recipe, model, tuple("abcdefghijkl"), STATS)
    path = tmp_path / "mixer.safetensors"
    tensors, about = load_file(path), describe(path)

    def part(prefix: str) -> dict[str, torch.Tensor]:
        return {
            name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)
        }

    encoder = build_encoder(about["encoder"]["name"], width=about["encoder"]["width"]).eval()
    encoder.network.load_state_dict(part("encoder."))
    mixer = MixerConfig(**about["mixer"]).build(16).eval()
    mixer.load_state_dict(part("mixer."))
    pairing = Pairing(torch.tensor([0.3]), torch.tensor([1, 0]))
    with torch.no_grad():
        mine = model.mixer(model.momentum.maps(X), pairing, (32, 32))
        assert mine.std() > 0
        assert torch.equal(mixer(encoder.maps(X), pairing, (32, 32)), mine)
