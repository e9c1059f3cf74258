"""BYOL's and SimSiam's losses, clean and mixed."""

import pytest
import torch
from torch.nn import functional as F

from samix.losses.cosine import byol_loss, simsiam_loss
from samix.pairing import Pairing

INDEX = torch.tensor([2, 0, 3, 1])
P, Z = torch.randn(4, 5), torch.randn(4, 5)


@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_mixed_losses_against_a_loop(lam):
    squares = cosines = 0.0
    for i in range(4):
        p = P[i] / P[i].norm()
        for j, weight in ((i, float(lam.expand(4)[i])), (int(INDEX[i]), 1 - float(lam.expand(4)[i]))):
            z = Z[j] / Z[j].norm()
            squares += weight * float((p - z).square().sum())
            cosines += weight * float(p @ z)
    pairing = Pairing(lam, INDEX)
    assert float(byol_loss(P, Z, pairing)) == pytest.approx(squares / 4, rel=1e-5)
    assert float(simsiam_loss(P, Z, pairing)) == pytest.approx(-cosines / 8, rel=1e-5)


def test_invariant_lam_one_is_the_clean_loss():
    pairing = Pairing(torch.ones(1), INDEX)
    torch.testing.assert_close(byol_loss(P, Z, pairing), byol_loss(P, Z))
    torch.testing.assert_close(simsiam_loss(P, Z, pairing), simsiam_loss(P, Z))


def test_gradient_equals_that_of_a_mixed_target_that_is_not_normalised_again():
    lam = torch.tensor([0.3])
    first, second = P.clone().requires_grad_(), P.clone().requires_grad_()
    byol_loss(first, Z, Pairing(lam, INDEX)).backward()
    z = F.normalize(Z, dim=1)
    (F.normalize(second, dim=1) - (lam * z + (1 - lam) * z[INDEX])).square().sum(dim=1).mean().backward()
    torch.testing.assert_close(first.grad, second.grad)


def test_gradient_never_reaches_the_target():
    p, z = P.clone().requires_grad_(), Z.clone().requires_grad_()
    byol_loss(p, z).backward()
    assert p.grad is not None and z.grad is None
