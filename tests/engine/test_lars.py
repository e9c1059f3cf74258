"""LARS against a slow loop over numbers."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from samix.engine.lars import Lars

SHAPES = [(4, 3), (2, 3, 3, 3), (5,), ()]


def parameters() -> list[nn.Parameter]:
    return [nn.Parameter(torch.randn(shape)) for shape in SHAPES]


def give_gradients(members: list[nn.Parameter]) -> None:
    for member in members:
        member.grad = torch.randn_like(member)


def norm(values: list[float]) -> float:
    return math.sqrt(sum(value * value for value in values))


def slow_step(weight: Tensor, gradient: Tensor, buffer: list[float], lr, momentum, decay, trust) -> Tensor:
    """One step of one parameter, number by number; changes `buffer`."""
    w, d = weight.double().flatten().tolist(), gradient.double().flatten().tolist()
    if weight.ndim > 1:
        d = [g + decay * v for g, v in zip(d, w, strict=True)]
        if norm(w) > 0 and norm(d) > 0:
            ratio = trust * norm(w) / norm(d)
            d = [ratio * v for v in d]
    for i, step in enumerate(d):
        buffer[i] = momentum * buffer[i] + step
        w[i] -= lr * buffer[i]
    return torch.tensor(w).view(weight.shape)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_value_several_steps(momentum, decay):
    members = parameters()
    optimizer = Lars(members, lr=0.5, momentum=momentum, weight_decay=decay, trust=0.02)
    expected = [member.detach().clone() for member in members]
    buffers = [[0.0] * member.numel() for member in members]
    for lr in (0.5, 0.4, 0.7, 0.1):
        give_gradients(members)
        gradients = [member.grad.clone() for member in members]
        optimizer.param_groups[0]["lr"] = lr
        optimizer.step()
        expected = [
            slow_step(w, g, b, lr, momentum, decay, 0.02)
            for w, g, b in zip(expected, gradients, buffers, strict=True)
        ]
        for member, weight, gradient in zip(members, expected, gradients, strict=True):
            torch.testing.assert_close(member.detach(), weight.float(), atol=1e-6, rtol=1e-5)
            assert torch.equal(member.grad, gradient), "gradients stay as they are"


def test_value_a_step_is_a_share_of_the_weight():
    member = nn.Parameter(torch.randn(6, 7))
    before = member.detach().clone()
    member.grad = 1e4 * torch.randn(6, 7)
    Lars([member], lr=2.0, trust=0.01, weight_decay=0.1).step()
    assert float((member.detach() - before).norm()) == pytest.approx(0.02 * float(before.norm()), rel=1e-4)


@pytest.mark.parametrize("shape", [(5,), (), (1,)])
def test_value_parameters_of_one_dimension_follow_sgd(shape):
    mine, theirs = (nn.Parameter(torch.ones(shape)) for _ in range(2))
    ours = Lars([mine], lr=0.3, weight_decay=0.5)
    sgd = torch.optim.SGD([theirs], lr=0.3, momentum=0.9)
    for _ in range(3):
        mine.grad = theirs.grad = torch.randn(shape)
        ours.step()
        sgd.step()
    torch.testing.assert_close(mine, theirs)


def test_value_groups_that_do_not_adapt_follow_sgd():
    mine, theirs, adapted = (nn.Parameter(torch.ones(3, 4)) for _ in range(3))
    ours = Lars([{"params": [mine], "adapt": False}, {"params": [adapted]}], lr=0.3, weight_decay=0.5)
    sgd = torch.optim.SGD([theirs], lr=0.3, momentum=0.9)
    for _ in range(3):
        mine.grad = theirs.grad = adapted.grad = torch.randn(3, 4)
        ours.step()
        sgd.step()
    torch.testing.assert_close(mine, theirs)
    assert not torch.allclose(mine, adapted)


def test_value_zero_weights_take_the_plain_step():
    member = nn.Parameter(torch.zeros(2, 3))
    member.grad = torch.randn(2, 3)
    Lars([member], lr=0.1, weight_decay=0.5).step()
    torch.testing.assert_close(member.detach(), -0.1 * member.grad)


def test_value_zero_gradient_and_decay_move_nothing():
    member = nn.Parameter(torch.ones(2, 3))
    member.grad = torch.zeros(2, 3)
    Lars([member], lr=0.1).step()
    assert torch.equal(member.detach(), torch.ones(2, 3))


def test_value_no_gradient_no_step_and_no_state():
    graded, idle = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(2, 3))
    optimizer = Lars([{"params": [graded, idle]}, {"params": [nn.Parameter(torch.ones(4))]}], lr=0.1)
    graded.grad = torch.ones(2, 3)
    optimizer.step()
    assert torch.equal(idle.detach(), torch.ones(2, 3)) and list(optimizer.state) == [graded]


def test_invariant_state_dict_round_trip_is_no_interruption():
    through = parameters()
    torn = [nn.Parameter(member.detach().clone()) for member in through]
    first, second = (Lars(m, lr=0.5, weight_decay=0.1, trust=0.02) for m in (through, torn))
    for step in range(6):
        give_gradients(through)
        for mine, other in zip(torn, through, strict=True):
            mine.grad = other.grad.clone()
        if step == 3:
            saved = copy.deepcopy(second.state_dict())
            second = Lars(torn, lr=9.0)
            second.load_state_dict(saved)
        first.step()
        second.step()
    assert all(torch.equal(a, b) for a, b in zip(through, torn, strict=True))


def test_gradient_goes_down_and_returns_the_loss():
    members = parameters()
    optimizer = Lars(members, lr=0.5, trust=0.1, momentum=0.5)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = sum((member - 2).square().mean() for member in members)
        value.backward()
        return value.detach()

    losses = [float(optimizer.step(loss)) for _ in range(20)]
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize("name", ["lr", "momentum", "weight_decay", "trust"])
def test_error_negative(name):
    with pytest.raises(ValueError, match=f"{name} of Lars must not be negative, got -1.0"):
        Lars(parameters(), **{"lr": 0.1, name: -1.0})
