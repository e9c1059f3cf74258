"""InterIntra: boxes between labels, blends within them, and a lam of its own for each kind."""

import pytest
import torch

from samix.core.pairing import Pairing, draw_lam
from samix.mixups import MIXUPS, Hints
from samix.mixups.cutmix import cutmix_mask
from samix.mixups.interintra import InterIntra

LABELS = torch.tensor([0, 0, 1, 2, 1, 2])
INDEX = torch.tensor([1, 2, 4, 0, 3, 5])  # alike: pairs (0, 1), (2, 4), (5, 5)
ALIKE = [True, False, True, False, False, True]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("lam", [torch.tensor([0.4]), torch.linspace(0.2, 0.7, 6)])
def test_value_against_a_loop(lam):
    x = torch.rand(6, 3, 12, 20)
    mixed = InterIntra()(x, Pairing(lam, INDEX), Hints(labels=LABELS), seeded(3))
    draw = seeded(3)
    boxes = cutmix_mask((12, 20), lam, draw).expand(6, -1, -1, -1)
    within = draw_lam(len(lam), 0.2, draw).expand(6)
    for i in range(6):
        j, alike = int(INDEX[i]), bool(LABELS[i] == LABELS[INDEX[i]])
        assert alike == ALIKE[i]
        mask = within[i].expand(1, 12, 20) if alike else boxes[i]
        torch.testing.assert_close(mixed.mask[i], mask)
        torch.testing.assert_close(mixed.x[i], mask * x[i] + (1 - mask) * x[j])
        assert float(mixed.pairing.lam[i]) == pytest.approx(float(mask.mean()), abs=1e-6)
        assert i == j or not torch.equal(mixed.x[i], x[i])
    assert torch.equal(mixed.pairing.index, INDEX)


def test_value_lam_is_a_vector_of_two_values_for_one_draw():
    x = torch.rand(6, 3, 16, 16)
    mixed = InterIntra()(x, InterIntra().draw(6)._replace(index=INDEX), Hints(labels=LABELS))
    alike = torch.tensor(ALIKE)
    assert mixed.pairing.lam.shape == (6,)
    assert len(mixed.pairing.lam[alike].unique()) == len(mixed.pairing.lam[~alike].unique()) == 1


@pytest.mark.parametrize("alike, spread", [(False, 0.05), (True, 0.25 / 1.4)])
def test_value_each_kind_has_its_own_beta(alike, spread):
    """The variance of Beta(a, a) is 1 / (4 (2 a + 1)): .05 for 2, .179 for .2."""
    policy, count = InterIntra(per_sample=True), 3000
    pairing = policy.draw(count, seeded(1))
    labels = torch.zeros(count, dtype=torch.long) if alike else torch.arange(count)
    lam = pairing.lam
    if alike:
        lam = policy(torch.rand(count, 3, 2, 2), pairing, Hints(labels=labels), seeded(2)).pairing.lam
    assert float(lam.mean()) == pytest.approx(0.5, abs=0.03)
    assert float(lam.var()) == pytest.approx(spread, rel=0.1)


def test_value_masks_are_binary_only_between_labels():
    policy = InterIntra(per_sample=True)
    mask = policy(torch.rand(6, 3, 16, 16), Pairing(torch.full((6,), 0.5), INDEX), Hints(labels=LABELS)).mask
    binary = ((mask == 0) | (mask == 1)).flatten(1).all(dim=1)
    constant = mask.flatten(1).std(dim=1) < 1e-6
    assert binary[~torch.tensor(ALIKE)].all() and constant[torch.tensor(ALIKE)].all()


def test_value_one_seed_mixes_two_views_alike():
    x, pairing, hints = torch.rand(6, 3, 16, 16), Pairing(torch.tensor([0.5]), INDEX), Hints(labels=LABELS)
    first, second = (InterIntra()(view, pairing, hints, seeded(5)) for view in (x, x.flip(3)))
    assert torch.equal(first.mask, second.mask)


@pytest.mark.parametrize("count", [1, 6])
def test_invariant_lam_one_keeps_every_image(count):
    x = torch.rand(6, 3, 16, 16)
    mixed = InterIntra()(x, Pairing(torch.ones(count), INDEX), Hints(labels=LABELS))
    assert torch.equal(mixed.x, x) and (mixed.pairing.lam == 1).all()


def test_invariant_prob_zero_never_mixes():
    x, policy = torch.rand(6, 3, 16, 16), InterIntra(prob=0.0)
    assert torch.equal(policy(x, policy.draw(6), Hints(labels=torch.zeros_like(LABELS))).x, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shape_the_images_keep_their_dtype(dtype):
    x = torch.rand(6, 3, 16, 16).to(dtype)
    mixed = InterIntra()(x, Pairing(torch.tensor([0.5]), INDEX), Hints(labels=LABELS))
    assert mixed.x.dtype == mixed.mask.dtype == dtype and mixed.pairing.lam.dtype == torch.float32


def test_value_not_in_the_table():
    """It takes integer labels, and the policies of the table any."""
    assert InterIntra not in MIXUPS.values()


def test_error_labels():
    x, pairing = torch.rand(6, 3, 8, 8), Pairing(torch.tensor([0.5]), INDEX)
    with pytest.raises(ValueError, match=r"InterIntra needs labels\. Pass hints=Hints\(labels=\.\.\.\)"):
        InterIntra()(x, pairing)
    soft = torch.nn.functional.one_hot(LABELS, 3)
    with pytest.raises(ValueError, match=r"one integer label per image, got labels of shape \[6, 3\]"):
        InterIntra()(x, pairing, Hints(labels=soft))


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"alpha": 0.2}, r"mixup.alpha must stay 1 \(set alpha_inter and alpha_intra instead\), got 0.2"),
        ({"alpha_inter": 0.0}, "mixup.alpha_inter must be positive, got 0.0"),
        ({"alpha_intra": -1.0}, "mixup.alpha_intra must be positive, got -1.0"),
    ],
)
def test_error_config(fields, message):
    with pytest.raises(ValueError, match=message):
        InterIntra(**fields)


@pytest.mark.parametrize("inter", ["mixup", "cutmix"])
@pytest.mark.parametrize("intra", ["mixup", "cutmix"])
def test_value_either_mixup_between_and_within_labels(inter, intra):
    """The grid of the paper's appendix: CutMix gives masks of 0 and 1, mixup constant ones."""
    policy = InterIntra(inter=inter, intra=intra, alpha_intra=4.0)
    mask = policy(torch.rand(6, 3, 16, 16), Pairing(torch.tensor([0.6]), INDEX), Hints(labels=LABELS)).mask
    binary = ((mask == 0) | (mask == 1)).flatten(1).all(dim=1)
    constant = mask.flatten(1).std(dim=1) < 1e-6
    for kind, pairs in ((inter, ~torch.tensor(ALIKE)), (intra, torch.tensor(ALIKE))):
        assert (binary if kind == "cutmix" else constant)[pairs].all()
        assert not (constant if kind == "cutmix" else binary)[pairs].any()


def test_error_unknown_part(unchecked_shapes):
    with pytest.raises(ValueError, match=r"unknown mixup.inter 'cutmx'. Did you mean 'cutmix'"):
        InterIntra(inter="cutmx")
