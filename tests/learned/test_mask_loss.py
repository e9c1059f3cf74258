"""The mask loss: margin, variance and their signs (SAMix appendix)."""

import pytest
import torch

from samix.learned.losses import mask_loss, mask_mean_loss, mask_variance


@pytest.fixture
def masks() -> torch.Tensor:
    return torch.rand(4, 1, 5, 6)


LAM = torch.tensor([0.05, 0.45, 0.9, 0.62])


def loop(masks: torch.Tensor, lams: list[float], margin: float) -> tuple[float, float]:
    """(l_mu, l_sigma), pixel by pixel."""
    mean_loss = variance = 0.0
    for i, mask in enumerate(masks):
        values = mask.flatten().tolist()
        mean = sum(values) / len(values)
        mean_loss += max(abs(lams[i % len(lams)] - mean) - margin, 0)
        variance += sum((v - mean) ** 2 for v in values) / len(values)
    return mean_loss / len(masks), variance / len(masks)


@pytest.mark.parametrize("lam", [LAM, torch.tensor([0.2])], ids=["lam per sample", "one lam"])
@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("weight", [2.0, 0.0, -1.0])
def test_value_against_a_loop(masks, lam, margin, weight):
    mean_loss, variance = loop(masks, lam.tolist(), margin)
    assert float(mask_mean_loss(masks, lam, margin)) == pytest.approx(mean_loss, abs=1e-6)
    assert float(mask_variance(masks)) == pytest.approx(variance, abs=1e-6)
    expected = mean_loss - weight * variance
    assert float(mask_loss(masks, lam, margin, weight)) == pytest.approx(expected, abs=1e-6)


def test_value_a_decided_mask_is_rewarded():
    """Equal means, growing variance: the loss must fall (the paper prints the other sign, E8)."""
    spreads = [0.0, 0.1, 0.3, 0.5]
    checkers = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).view(1, 1, 2, 2)
    losses = [float(mask_loss(0.5 + s * checkers, torch.tensor([0.5]))) for s in spreads]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]


def test_value_variance_is_largest_for_half_black_half_white():
    assert float(mask_variance(torch.tensor([0.0, 1.0]).view(1, 1, 1, 2))) == pytest.approx(0.25)
    assert float(mask_variance(torch.full((3, 1, 4, 4), 0.7))) == pytest.approx(0.0, abs=1e-6)


def test_gradient_of_the_mean_vanishes_inside_the_margin_and_points_to_lam_outside():
    for lam, sign in ((0.55, 0), (0.9, -1), (0.1, 1)):
        mask = torch.full((1, 1, 4, 4), 0.5, requires_grad=True)
        (grad,) = torch.autograd.grad(mask_mean_loss(mask, torch.tensor([lam]), 0.1), mask)
        torch.testing.assert_close(grad, torch.full_like(grad, sign / 16))


def test_gradient_pushes_pixels_away_from_their_mean(masks):
    masks.requires_grad_()
    (grad,) = torch.autograd.grad(mask_loss(masks, masks.detach().mean(dim=(1, 2, 3))), masks)
    away = masks.detach() - masks.detach().mean(dim=(1, 2, 3), keepdim=True)
    assert (grad * away <= 0).all() and (grad * away).sum() < 0


@pytest.mark.parametrize("lam", [0.1, 0.35, 0.5, 0.9])
@pytest.mark.parametrize("upsampling", ["bilinear", "nearest"])
@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_value_golden_mask_loss(golden, lam, upsampling, margin):
    """The official mean and variance run over the whole batch, so the batch is laid out as one tall mask."""
    record = golden("a_samix_mixblock_k-1_eval")
    run = f"lam{lam}/{upsampling}"
    mask = record[f"{run}/mask"][:, 0].reshape(1, 1, 128, 32).requires_grad_()
    lams = torch.tensor([lam])
    l1 = mask_mean_loss(mask, lams, margin)
    both = mask_loss(mask, lams, margin)
    torch.testing.assert_close(l1.detach(), record[f"{run}/mask_loss/L1/margin{margin}"], rtol=0, atol=1e-5)
    expected = record[f"{run}/mask_loss/L1+Variance/margin{margin}"]
    torch.testing.assert_close(both.detach(), expected, rtol=0, atol=1e-5)
