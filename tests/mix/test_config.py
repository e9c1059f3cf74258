"""A Mix goes into YAML and comes back the same; it prints what it is."""

import pytest
import torch
import yaml

from samix import MIXUPS, CutMix, Mix, MixUp
from samix.mixups import FMix, GridMix, ManifoldMix, Policy

MIXES = {name: Mix(name, 5) for name in MIXUPS} | {
    "settings": Mix(GridMix(alpha=0.3, area=(0.2, 0.9)), 5, prob=0.5, mode="elem", smoothing=0.1),
    "layers": Mix(ManifoldMix(layers=("input", "layer1")), 5),
    "minmax": Mix(CutMix(minmax=(0.2, 0.8)), 5),
    "several": Mix({"mixup": 0.2, "cutmix": 0.8}, 5, alpha=0.4),
    "normalised": Mix("saliencymix", mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.3), keys=("image", "label")),
    "heads": Mix("mixup", {"digit": 10, "angle": None}, off_epoch=9, correct_lam=False, per_frame=True),
    "timm": Mix.timm(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=5),
}


@pytest.mark.parametrize("name", MIXES)
def test_value_yaml_and_back(name):
    mix = MIXES[name]
    text = yaml.safe_dump(mix.to_config(), sort_keys=False)
    back = Mix.from_config(yaml.safe_load(text))
    assert back.to_config() == mix.to_config() and repr(back) == repr(mix)
    assert back.policy == mix.policy


def test_value_a_file_and_what_no_file_can_hold(tmp_path):
    path, model = tmp_path / "mix.yaml", torch.nn.Flatten()
    path.write_text(yaml.safe_dump(MIXES["settings"].to_config()))
    mix = Mix.from_config(path, model=model, generator=torch.Generator().manual_seed(3))
    assert mix.supplier.network is model and mix.generator.initial_seed() == 3 and mix.prob == 0.5


def test_value_the_round_trip_draws_the_same():
    x, y = torch.rand(6, 3, 16, 16), torch.arange(6) % 5
    for name in ("settings", "minmax", "several", "timm"):
        given = MIXES[name].to_config()
        first, second = (
            Mix.from_config(given, generator=torch.Generator().manual_seed(1))(x, y)[0] for _ in range(2)
        )
        assert torch.equal(first, second) and not torch.equal(first, x)


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        (Mix("cutmix", 100), "Mix(CutMix(), classes=100)"),
        (Mix(MixUp(alpha=0.2), 10, mode="pair"), "Mix(MixUp(alpha=0.2), classes=10, mode='pair')"),
        (Mix(["fmix", FMix(decay=2.0)]), "Mix([0.5 * FMix(), 0.5 * FMix(decay=2.0)])"),
    ],
)
def test_value_prints_what_it_is(mix, words):
    assert repr(mix) == words


class Own(Policy):
    """A policy that samix does not know."""


def test_value_a_policy_of_ones_own_prints_as_well():
    assert repr(Mix(Own(), 3)) == "Mix(Own(), classes=3)"


def test_error_a_policy_of_ones_own_has_no_configuration():
    with pytest.raises(ValueError, match="Own has no name in samix.MIXUPS"):
        Mix(Own(), 3).to_config()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"classes": 3}, "names at least its policy"),
        ({"policy": "cutmx"}, "unknown mixup 'cutmx'. Did you mean 'cutmix'"),
        ({"policy": {"name": "cutmix", "alhpa": 1}}, "cutmix has no setting 'alhpa'. Did you mean 'alpha'"),
        ({"policy": "cutmix", "class": 3}, "has no 'class'. Did you mean 'classes'"),
        ({"policy": "cutmix", "prob": 3}, r"prob must lie in \[0, 1\], got 3"),
    ],
)
def test_error_configurations(unchecked_shapes, config, message):
    with pytest.raises(ValueError, match=message):
        Mix.from_config(config)


def test_error_yaml_builds_no_objects(tmp_path):
    path = tmp_path / "mix.yaml"
    path.write_text("policy: !!python/object/apply:os.getcwd []")
    with pytest.raises(yaml.YAMLError):
        Mix.from_config(path)
