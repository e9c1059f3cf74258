"""Does the mask follow lam?"""

import pytest
import torch

from samix.evaluate.following import follow_lam
from samix.mixups.mixup import constant_mask


def sweep(means: torch.Tensor) -> torch.Tensor:
    """Constant masks [L, N, 1, 4, 4] with the given means [L, N]."""
    return torch.stack([constant_mask((4, 4), row) for row in means])


def test_value_perfect_masks_follow_perfectly():
    lams = torch.linspace(0, 1, 11)
    found = follow_lam(sweep(lams[:, None].expand(-1, 3)), lams)
    assert found.correlation == pytest.approx(1)
    assert found.gap == pytest.approx(0, abs=1e-6)
    assert found.deviation == pytest.approx(0, abs=1e-6)


def test_value_deaf_masks_do_not_follow():
    lams = torch.linspace(0, 1, 11)
    found = follow_lam(sweep(torch.full((11, 3), 0.5)), lams)
    assert found.correlation == 0
    assert found.gap == pytest.approx(float((lams - 0.5).abs().mean()))


def test_value_against_a_slow_loop():
    lams, masks = torch.rand(5), torch.rand(5, 4, 1, 6, 6)
    pairs = [(float(masks[k, n].mean()), float(lams[k])) for k in range(5) for n in range(4)]
    x, y = torch.tensor(pairs, dtype=torch.float64).T
    found = follow_lam(masks, lams)
    assert found.correlation == pytest.approx(float(torch.corrcoef(torch.stack([x, y]))[0, 1]), rel=1e-5)
    assert found.gap == pytest.approx(sum(abs(a - b) for a, b in pairs) / len(pairs), rel=1e-5)
    deviations = [float(masks[k, n].std()) for k in range(5) for n in range(4)]
    assert found.deviation == pytest.approx(sum(deviations) / len(deviations), rel=1e-5)
