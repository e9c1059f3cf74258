"""The best linear classifier on fixed features, found exactly: no learning rate, no seed, no epochs."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import check_labels
from samix.core.shapes import Features, Labels, Logits
from samix.evaluate.accuracy import Score, count, score

MOST_STEPS = 2000


def logistic_probe(
    train: Float[Tensor, "N D"],
    train_labels: Int[Tensor, "N"],
    test: Float[Tensor, "M D"],
    test_labels: Int[Tensor, "M"],
    *,
    classes: int,
    penalty: float = 1e-3,
) -> Score:
    """Fits on the training features, standardised by their own mean and deviation; scores the test ones."""
    for labels in (train_labels, test_labels):
        check_labels(labels, classes)
    mean, deviation = train.double().mean(dim=0), train.double().std(dim=0, correction=0)
    deviation = deviation.clamp(min=1e-6)  # a dead feature stays dead
    weight, bias = fit_logistic((train.double() - mean) / deviation, train_labels, classes, penalty)
    logits: Logits = (test.double() - mean) / deviation @ weight + bias
    return score(count(logits, test_labels))


def fit_logistic(x: Features, y: Labels, classes: int, penalty: float) -> tuple[Tensor, Tensor]:
    """argmin of mean CE(y, x W + b) + penalty / 2 |W|^2 as (W, b): convex, so L-BFGS from 0 finds it.

    scikit-learn's LogisticRegression has the same optimum for C = 1 / (N penalty).
    """
    if penalty <= 0:
        raise ValueError(f"penalty must be positive (else the optimum may lie at infinity), got {penalty}.")
    x = x.double()
    weight = x.new_zeros(x.shape[1], classes).requires_grad_()
    bias = x.new_zeros(classes).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [weight, bias],
        max_iter=MOST_STEPS,
        tolerance_grad=1e-7,
        tolerance_change=1e-12,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        with torch.enable_grad():
            loss = F.cross_entropy(x @ weight + bias, y) + penalty / 2 * weight.square().sum()
            loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()
