"""What OpenMixup's own tests ask of its mixups and its losses, in samix's words.

Differs: labels in a column [B, 1] are refused with the call that mends them; the loss under weights per class
is torch's; there is no mean average precision of labels with holes.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from samix import GridMix, Mix
from samix.core.pairing import Pairing
from samix.evaluate.accuracy import count, score
from samix.losses.classification import (
    LabelLoss,
    cross_entropy,
    mixup_cross_entropy,
    soft_binary_cross_entropy,
)

X, Y = torch.randn(4, 3, 32, 32), torch.arange(4)
BLIND = ["mixup", "cutmix", "smoothmix", "fmix", GridMix(cells_min=4, cells_max=4), "resizemix"]


def network() -> nn.Sequential:
    """A classifier whose layer 0 has maps."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
    )


AS_DRAWN = {"mean": [0.0] * 3, "std": [1.0] * 3}
LOOKING = {
    "saliencymix": AS_DRAWN,
    "attentivemix": {"model": network(), "layer": "0"},
    "puzzlemix": {"model": network()} | AS_DRAWN,
}


def assert_pairs(mix: Mix) -> None:
    images, y_a, y_b, lam = mix.pairs(X, Y)
    assert images.shape == X.shape and images.isfinite().all()
    assert torch.equal(y_a, Y) and (y_b != Y).all() and ((lam >= 0) & (lam <= 1)).all()


@pytest.mark.parametrize("policy", BLIND)
def test_shape_pictures_and_two_labels_with_a_weight(policy):
    assert_pairs(Mix(policy))


@pytest.mark.filterwarnings("ignore:the policy looks at pixels")
@pytest.mark.parametrize("policy", LOOKING)
def test_shape_so_do_policies_that_look_at_the_pictures(policy):
    assert_pairs(Mix(policy, **LOOKING[policy]))


@pytest.mark.parametrize("mode", ["batch", "elem", "pair"])
@pytest.mark.parametrize(
    "policy", ["mixup", "cutmix", "fmix", "gridmix", "smoothmix", "resizemix", "mixup+cutmix"]
)
def test_invariant_labels_weigh_what_the_pictures_show(policy, mode):
    """A picture of one number shows the mean of its parents' numbers, and so does its label."""
    y = torch.arange(8)
    x = y.float().view(-1, 1, 1, 1).expand(-1, 3, 12, 20) + 1
    images, rows = Mix(policy, 8, mode=mode)(x, y)
    torch.testing.assert_close(images.mean(dim=(1, 2, 3)), rows @ (torch.arange(8.0) + 1), atol=1e-4, rtol=0)
    assert ((rows > 0).sum(dim=1) <= 2).all()


@pytest.mark.parametrize("policy", BLIND)
def test_error_labels_in_a_column(policy):
    with pytest.raises(ValueError, match=r"got \[4, 1\].*Call y\.squeeze\(1\)"):
        Mix(policy, 10)(X, Y[:, None])


# Scores with losses of 2000 and 200: nothing overflows, and the mean is exact.
SCORES, WRONG = torch.tensor([[-1000.0, 1000.0], [100.0, -100.0]]), torch.tensor([0, 1])


@pytest.mark.parametrize("y", [WRONG, F.one_hot(WRONG, 2).float()], ids=["indices", "rows"])
def test_value_cross_entropy_of_extreme_scores(y):
    assert cross_entropy(SCORES, y).item() == pytest.approx(1100)
    assert LabelLoss(2).clean(SCORES, y).item() == pytest.approx(1100)
    # Picture 0: .6 of its own label (2000) and .4 of its partner's (0); picture 1: .5 of 200 and of 0.
    pairing = Pairing(torch.tensor([0.6, 0.5]), torch.tensor([1, 0]))
    assert mixup_cross_entropy(SCORES, y, pairing).item() == pytest.approx((1200 + 100) / 2)


def test_value_binary_cross_entropy_of_extreme_scores():
    scores = torch.tensor([[-200.0, 100.0], [500.0, -1000.0], [300.0, -300.0]])
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert soft_binary_cross_entropy(scores, rows).item() == pytest.approx((200 + 100 + 500 + 1000) / 3)


@pytest.mark.parametrize("weight", [None, torch.tensor([0.3, 0.7])])
def test_value_weights_per_class_belong_to_the_loss(weight):
    """With both labels and lam, as the page on the drop-in writes it: each brings its class's weight."""
    lam, other = torch.tensor([0.6, 0.5]), WRONG.flip(0)
    losses = [F.cross_entropy(SCORES, y, weight=weight, reduction="none") for y in (WRONG, other)]
    mixed = lam * losses[0] + (1 - lam) * losses[1]
    w = torch.ones(2) if weight is None else weight
    assert mixed.tolist() == pytest.approx([0.6 * 2000 * float(w[0]), 0.5 * 200 * float(w[1])])


def test_value_top_1_of_four_pictures():
    logits = torch.tensor([[0.1, 0.2, 0.4], [0.2, 0.5, 0.3], [0.4, 0.3, 0.1], [0.8, 0.9, 0.0]])
    assert score(count(logits, torch.tensor([2, 0, 0, 0]))).top1 == pytest.approx(50.0)
