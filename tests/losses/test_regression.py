"""BYOL's and SimSiam's losses, clean and mixed."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import Parents
from samix.losses.contrastive import over_parents
from samix.losses.regression import byol_per_sample, simsiam_per_sample

INDEX = torch.tensor([2, 0, 3, 1])
P, Z = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(1)).unbind()


def pairs(lam: Tensor) -> Parents:
    lam = lam.expand(4)
    return Parents(torch.stack([torch.arange(4), INDEX], dim=1), torch.stack([lam, 1 - lam], dim=1))


def mixed(per_sample, p: Tensor, lam: Tensor) -> Tensor:
    return over_parents(lambda positive: per_sample(p, Z[positive]), pairs(lam))


@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_mixed_losses_against_a_loop(lam):
    squares = cosines = 0.0
    for i in range(4):
        p = P[i] / P[i].norm()
        for j, weight in ((i, float(lam.expand(4)[i])), (int(INDEX[i]), 1 - float(lam.expand(4)[i]))):
            z = Z[j] / Z[j].norm()
            squares += weight * float((p - z).square().sum())
            cosines += weight * float(p @ z)
    assert float(mixed(byol_per_sample, P, lam)) == pytest.approx(squares / 4, rel=1e-5)
    assert float(mixed(simsiam_per_sample, P, lam)) == pytest.approx(-cosines / 8, rel=1e-5)


@pytest.mark.parametrize("per_sample", [byol_per_sample, simsiam_per_sample])
def test_invariant_lam_one_is_the_clean_loss(per_sample):
    torch.testing.assert_close(mixed(per_sample, P, torch.ones(1)), per_sample(P, Z).mean())


@pytest.mark.parametrize("per_sample", [byol_per_sample, simsiam_per_sample])
def test_invariant_lengths_do_not_matter(per_sample):
    torch.testing.assert_close(per_sample(3 * P, 7 * Z), per_sample(P, Z))


def mixed_target_gradient(lam: Tensor, *, normalise: bool) -> Tensor:
    """d/dp of |p - t|^2 with the mixture t of the targets."""
    p, z = P.clone().requires_grad_(), F.normalize(Z, dim=1)
    target = lam * z + (1 - lam) * z[INDEX]
    target = F.normalize(target, dim=1) if normalise else target
    (F.normalize(p, dim=1) - target).square().sum(dim=1).mean().backward()
    return p.grad


def test_gradient_equals_that_of_a_mixed_target_that_is_not_normalised_again():
    lam, p = torch.tensor([0.3]), P.clone().requires_grad_()
    mixed(byol_per_sample, p, lam).backward()
    torch.testing.assert_close(p.grad, mixed_target_gradient(lam, normalise=False))
    assert (p.grad - mixed_target_gradient(lam, normalise=True)).abs().max() > 1e-2


@pytest.mark.parametrize("per_sample", [byol_per_sample, simsiam_per_sample])
def test_gradient_never_reaches_the_target(per_sample):
    p, z = P.clone().requires_grad_(), Z.clone().requires_grad_()
    per_sample(p, z).mean().backward()
    assert p.grad is not None and z.grad is None


@pytest.mark.parametrize("per_sample", [byol_per_sample, simsiam_per_sample])
def test_shape_half_precision_is_computed_in_float32(per_sample):
    half = per_sample(P.bfloat16(), Z.bfloat16())
    assert half.dtype == torch.float32 and half.shape == (4,)
    torch.testing.assert_close(half, per_sample(P.bfloat16().float(), Z.bfloat16().float()))
