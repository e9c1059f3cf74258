"""What the parts of samix promise each other: losses, models, what some models can do, settings of mixups."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from samix.contract import Around, Classifies, Clustered, Context, Losses, MixupSettings, Model, Paints, Plain
from samix.core.pairing import Pairing
from samix.data.datasets import Data
from samix.engine.pretrained import PretrainedMixup
from samix.engine.pretraining import VIEW_POLICIES, Pretraining
from samix.engine.training import POLICIES, Training
from samix.learned import CLUSTERED, LEARNED, LEARNED_WITHOUT_LABELS
from samix.methods.ssl.moco import MoCoV2
from samix.mixups import MIXUPS, MixupTokenMix, MixupTransMix
from samix.nn.zoo import Network

X, Y = torch.rand(2, 3, 16, 16), torch.tensor([0, 1])
PAIRING = Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
TINY = {"data": Data(size=16), "encoder": Network(width=4)}
BUILDS = {f"train {name}": (kind, False) for name, kind in POLICIES.items()}
BUILDS |= {f"pretrain {name}": (kind, True) for name, kind in VIEW_POLICIES.items()}

PAINTING = {*(f"train {name}" for name in LEARNED), *(f"pretrain {name}" for name in LEARNED_WITHOUT_LABELS)}
CLUSTERING = {"pretrain samix-c", *(f"pretrain {name}" for name in CLUSTERED)}


def test_value_total_adds_what_is_there():
    encoder, mixer = torch.tensor(2.0), torch.tensor(0.5)
    assert Losses(encoder).total is encoder
    assert float(Losses(encoder, mixer).total) == 2.5


# ------------------------------------------------------------ Model


class Unfinished(Model):
    """A model that forgot its losses."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.frozen = nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)


def test_error_a_model_without_forward_says_so():
    with pytest.raises(TypeError, match=r"^Unfinished must define forward\(x, y, progress\)\.$"):
        Unfinished()(X, Y, 0.0)


def test_value_what_a_model_does_where_it_says_nothing():
    model = Unfinished()
    assert model.sync_norm is False and model.masks_pairs is False
    assert model.after_step(0.5) is None and model.picture(X, Y, PAIRING) is None
    groups = model.parameter_groups()
    assert list(groups) == ["encoder"]
    assert {id(p) for p in groups["encoder"]} == {id(p) for p in model.layer.parameters()}
    assert not any(isinstance(model, ability) for ability in (Classifies, Paints, Clustered))


# ------------------------------------------------------------ Around


class Method(Unfinished):
    """A method that answers in its own words."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.stepped = nn.Identity(), []

    @property
    def sync_norm(self) -> bool:
        return True

    @property
    def masks_pairs(self) -> bool:
        return True

    def after_step(self, progress: float) -> None:
        self.stepped.append(progress)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        return {"constant": [self.layer.weight]}

    def heads(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"mix_q": x}


def test_value_around_hands_on_what_is_the_methods(unchecked_shapes):
    method = Method()
    around = Around(Around(method))
    assert around.encoder is method.encoder
    assert around.sync_norm is True and Around(Unfinished()).sync_norm is False
    around.after_step(0.25)
    assert method.stepped == [0.25]
    groups = around.parameter_groups()
    assert list(groups) == ["constant"] and groups["constant"][0] is method.layer.weight


def test_value_around_keeps_to_itself_what_it_changes():
    """Losses, pictures and heads are those of mixed images: each wrapper says for itself what they are."""
    around = Around(Method())
    assert around.masks_pairs is False and around.picture(X, Y, PAIRING) is None
    assert not isinstance(around, Classifies) and isinstance(around.method, Classifies)
    with pytest.raises(TypeError, match="Around must define forward"):
        around(X, Y)


def test_gradient_around_owns_the_methods_parameters_once():
    method = Method()
    around = Around(method)
    assert {id(p) for p in around.parameters()} == {id(p) for p in method.parameters()}
    assert all(name.startswith("method.") for name in around.state_dict())


# ------------------------------------------------------------ settings of mixups


def build(kind: type, pretraining: bool, mixer: Path) -> Model:
    mixup = kind(mixer=str(mixer)) if kind is PretrainedMixup else kind()
    if pretraining:
        return Pretraining(mixup=mixup, method=MoCoV2(queue=8, dim=4, hidden=4), **TINY).build(100_000)
    return Training(mixup=mixup, **TINY).build(3)


@pytest.fixture(params=BUILDS, scope="module")
def name(request) -> str:
    """Every mixup of training and of pre-training in turn."""
    return request.param


@pytest.fixture(scope="module")
def settings(name):
    return BUILDS[name][0]()


@pytest.fixture(scope="module")
def model(name, finished) -> Model:
    return build(*BUILDS[name], finished)


def test_invariant_settings_of_every_mixup_are_settings_of_a_mixup(name, settings):
    assert isinstance(settings, MixupSettings)
    assert settings.mixes is (name not in ("train plain", "pretrain plain"))
    assert settings.learned is (name in PAINTING)
    assert type(settings).mixes is settings.mixes and type(settings).learned is settings.learned
    assert callable(settings.build)


def test_invariant_what_every_mixup_builds_is_a_model(name, model):
    assert isinstance(model, Model) and isinstance(model.encoder, nn.Module)
    assert type(model).forward is not Model.forward
    trained = [p for group in model.parameter_groups().values() for p in group]
    assert model.parameter_groups().keys() <= {"encoder", "mixer", "head", "constant"}
    assert len(trained) == len(set(map(id, trained))), "no parameter has two settings"
    assert {id(p) for p in trained} == {id(p) for p in model.parameters() if p.requires_grad}
    assert ("mixer" in model.parameter_groups()) is (name in PAINTING)


def test_invariant_abilities_are_those_of_the_right_models(name, model):
    assert isinstance(model, Classifies) is name.startswith("train ")
    assert isinstance(model, Paints) is (name in PAINTING)
    assert isinstance(model, Clustered) is (name in CLUSTERING)


def test_invariant_masks_of_pairs(name, model):
    """Where nothing is mixed there are no masks; a hand-made policy says it, a Mixer always paints them."""
    _, mixup = name.split()
    hand_made = MIXUPS | {"mixup+transmix": MixupTransMix, "mixup+tokenmix": MixupTokenMix}
    made = mixup == "samix-p" or (mixup in hand_made and hand_made[mixup].masks_pairs)
    assert model.masks_pairs is (made or name in PAINTING | CLUSTERING)


def test_value_plain_settings_leave_the_method_alone():
    method = Unfinished()
    assert Plain().build(method, Context(4, 16, mixing=lambda *_, **__: None)) is method


@pytest.mark.parametrize("missing", ["mixes", "learned", "build"])
def test_value_settings_that_lack_a_part_are_none(missing):
    parts = {"mixes": True, "learned": False, "build": lambda method, context: method}
    assert isinstance(SimpleNamespace(**parts), MixupSettings)
    assert not isinstance(SimpleNamespace(**{k: v for k, v in parts.items() if k != missing}), MixupSettings)
