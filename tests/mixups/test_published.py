"""The paper's setting of every mixup in every family: alpha as listed, and the official ways beside it."""

from typing import get_args

import pytest
from torch import Generator

from samix.mixups import (
    MIXUPS,
    AugMix,
    CutMix,
    FMix,
    MixupCutMix,
    MixupTokenMix,
    MixupTransMix,
    PuzzleMix,
    ResizeMix,
    SuperMix,
    TokenMix,
    TransMix,
)
from samix.mixups.published import ALPHAS, DATA, DataSet, published

TABLE = {  # one line per data set, to be read beside the table of columns
    "cifar100": {
        "mixup": 1,
        "cutmix": 0.2,
        "manifoldmix": 2,
        "saliencymix": 0.2,
        "fmix": 0.2,
        "resizemix": 1,
    },
    "tiny": {"mixup": 1, "cutmix": 1, "manifoldmix": 0.2, "saliencymix": 1, "fmix": 1, "resizemix": 1},
    "imagenet-r18": dict.fromkeys(
        ("mixup", "cutmix", "manifoldmix", "saliencymix", "fmix", "resizemix"), 0.2
    ),
    "imagenet": {"mixup": 0.2, "cutmix": 1, "manifoldmix": 0.2, "saliencymix": 1, "fmix": 1, "resizemix": 1},
    "inat": {"mixup": 0.2, "cutmix": 1, "manifoldmix": 0.2, "saliencymix": 1, "fmix": 1, "resizemix": 1},
    "places": {
        "mixup": 0.2,
        "cutmix": 0.2,
        "manifoldmix": 0.2,
        "saliencymix": 0.2,
        "fmix": 0.2,
        "resizemix": 1,
    },
    "fine": {"mixup": 0.2, "cutmix": 1, "manifoldmix": 0.5, "saliencymix": 0.2, "fmix": 0.2, "resizemix": 1},
    "rsb-a3": {
        "mixup": 0.2,
        "cutmix": 0.2,
        "manifoldmix": 0.2,
        "saliencymix": 0.2,
        "fmix": 0.2,
        "resizemix": 1,
    },
    "modern": {
        "mixup": 0.2,
        "cutmix": 0.2,
        "manifoldmix": 0.2,
        "saliencymix": 0.2,
        "fmix": 0.2,
        "resizemix": 1,
    },
    "ssl": dict.fromkeys(("mixup", "cutmix", "manifoldmix", "saliencymix", "fmix", "resizemix"), 1),
}
EVERYWHERE = {"puzzlemix": 1, "comixup": 2, "augmix": 1, "attentivemix": 2}


@pytest.mark.parametrize("data", DATA)
def test_value_alpha_of_every_method(data):
    expected = TABLE[data] | EVERYWHERE | {"gridmix": 1 if data == "ssl" else 0.2}
    assert {name: published(name, data).alpha for name in expected} == expected
    assert set(TABLE) == set(DATA) == set(get_args(DataSet))
    assert all(len(row) == len(DATA) for row in ALPHAS.values())


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MIXUPS)
def test_invariant_every_policy_has_a_setting_and_it_draws(name, data):
    policy = published(name, data)
    switched = data == "modern" and name in ("transmix", "tokenmix")
    assert isinstance(policy, MIXUPS[name]) != switched
    assert policy.draw(4, Generator().manual_seed(0)).index.shape == (4,)


def test_value_the_official_ways():
    for data in DATA:
        assert published("fmix", data).spectrum == "code" != FMix().spectrum
        assert published("cutmix", data).box == published("mixup+cutmix", data).box == "paper" != CutMix().box
        assert published("resizemix", data).from_alpha and not ResizeMix().from_alpha
        assert published("puzzlemix", data).max_exponent == (4 if data == "cifar100" else 3)
        assert published("augmix", data) == AugMix(severity=3.0 if data in ("cifar100", "tiny") else 1.0)
    assert published("supermix", "cifar100") == SuperMix()
    assert published("supermix", "imagenet") == SuperMix(grid=16, sigma=2.0)


def test_value_puzzlemix_cuts_small_pictures_only_into_sixteenths():
    def blocks(data):
        policy, draw = published("puzzlemix", data), Generator().manual_seed(0)
        return {policy.draw_blocks((64, 64), draw) for _ in range(60)}

    assert blocks("cifar100") == {2, 4, 8, 16}
    assert blocks("tiny") == blocks("imagenet") == {2, 4, 8}
    assert PuzzleMix().max_exponent == 4


def test_value_mixup_beside_cutmix_and_beside_attention():
    alphas = {data: published("mixup+cutmix", data).mixup_alpha for data in DATA}
    assert (alphas["rsb-a3"], alphas["modern"], alphas["ssl"]) == (0.1, 0.8, 1.0)
    assert {published("mixup+cutmix", data).cutmix_alpha for data in DATA} == {1.0}
    assert isinstance(published("mixup+cutmix", "modern"), MixupCutMix)
    assert published("transmix", "modern") == MixupTransMix(
        mixup_alpha=0.8, transmix_alpha=1.0, switch_prob=0.5
    )
    assert published("tokenmix", "modern") == MixupTokenMix(mixup_alpha=0.8, switch_prob=0.5)
    assert published("transmix", "ssl") == TransMix() and published("tokenmix", "ssl") == TokenMix()


@pytest.mark.usefixtures("unchecked_shapes")
def test_error_unknown_names():
    with pytest.raises(ValueError, match=r"unknown mixup 'cutmx'. Did you mean 'cutmix'"):
        published("cutmx", "tiny")
    with pytest.raises(ValueError, match=r"unknown data set 'imagnet'. Did you mean 'imagenet'"):
        published("cutmix", "imagnet")
