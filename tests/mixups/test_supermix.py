"""SuperMix: masks, loss and steps of its paper against loops, then what the teacher ends up seeing."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.methods.hints import teacher_of
from samix.mixups import Hints
from samix.mixups.supermix import Goal, SuperMix, ask_teacher, blur, maps_to_mask, newton_step

CLASSES = 6


def patterns(size: tuple[int, int] = (16, 16)) -> torch.Tensor:
    """One smooth picture per class; on the coarse grid they are orthogonal."""
    drawn = torch.randn(27, CLASSES, generator=torch.Generator().manual_seed(7))
    coarse = 5 * torch.linalg.qr(drawn).Q.T.reshape(CLASSES, 3, 3, 3)
    return F.interpolate(coarse, size=size, mode="bilinear")


def teacher(x: torch.Tensor) -> torch.Tensor:
    """Likeness to the picture of each class."""
    known = patterns((x.shape[2], x.shape[3])).to(x)
    return 10 * (x.flatten(1) @ known.flatten(1).T) / known.flatten(1).square().sum(dim=1)


def images(labels: list[int], size: tuple[int, int] = (16, 16)) -> torch.Tensor:
    noise = torch.randn(len(labels), 3, *size, generator=torch.Generator().manual_seed(8))
    return patterns(size)[labels] + 0.1 * noise


def goal_of(x: torch.Tensor, index: list[int], lam: list[float]) -> Goal:
    classes = teacher(x).argmax(dim=1)
    return Goal(x, x[index], classes, classes[index], torch.tensor(lam))


def mix(policy: SuperMix, x: torch.Tensor, lam: torch.Tensor, teach=teacher) -> Mixed:
    return policy(x, Pairing(lam, torch.arange(len(x)).roll(1)), Hints(teacher=teach))


@pytest.mark.parametrize("size", [(8, 8), (12, 20)])
def test_value_the_mask_against_a_loop(size):
    maps = 3 * torch.randn(2, 2, 4, 4)
    mask = maps_to_mask(maps, size)

    def sample(grid: list[list[float]], row: int, column: int) -> float:
        """Bilinear, pixel centres, the border repeated."""
        total = 0.0
        for (r, a), (c, b) in [
            (rows, columns) for rows in corners(row, size[0]) for columns in corners(column, size[1])
        ]:
            total += a * b * grid[r][c]
        return total

    def corners(pixel: int, side: int) -> list[tuple[int, float]]:
        at = max((pixel + 0.5) * 4 / side - 0.5, 0.0)
        low = math.floor(at)
        return [(low, 1 - (at - low)), (min(low + 1, 3), at - low)]

    for i in range(2):
        for row in range(size[0]):
            for column in range(size[1]):
                shown = [1 / (1 + math.exp(-sample(maps[i, k].tolist(), row, column))) for k in range(2)]
                assert float(mask[i, 0, row, column]) == pytest.approx(shown[0] / sum(shown), abs=1e-5)


def test_value_masks_of_very_low_maps_are_finite():
    maps = torch.tensor([[-500.0, -500.0], [-500.0, -490.0]]).view(2, 2, 1, 1).expand(2, 2, 4, 4)
    means = maps_to_mask(maps, (8, 8)).mean(dim=(1, 2, 3))
    torch.testing.assert_close(means, torch.tensor([0.5, 1 / (1 + math.exp(10))]))


@pytest.mark.parametrize(("sigma", "half"), [(1.0, 2), (2.0, 5), (0.1, 0)])
def test_value_the_blur_against_a_loop(sigma, half):
    maps = torch.randn(2, 2, 6, 6)
    taps = [math.exp(-(t**2) / (2 * sigma**2)) for t in range(-half, half + 1)]
    taps = [tap / sum(taps) for tap in taps]
    expected = torch.zeros_like(maps)
    for row in range(6):
        for column in range(6):
            for r in range(max(row - half, 0), min(row + half, 5) + 1):
                for c in range(max(column - half, 0), min(column + half, 5) + 1):
                    weight = taps[r - row + half] * taps[c - column + half]
                    expected[:, :, row, column] += weight * maps[:, :, r, c]
    torch.testing.assert_close(blur(maps, sigma), expected)


def test_value_the_blur_keeps_its_precision_under_autocast():
    maps = 1e-6 * torch.randn(2, 2, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        blurred = blur(maps, 1.0)
    assert torch.equal(blurred, blur(maps, 1.0))


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
def test_value_the_step_and_its_bounds(size):
    loss, gradient = torch.tensor([0.5, 3.0]), size * torch.randn(2, 2, 5, 5)
    step, blurred = newton_step(loss, gradient, 1.0), blur(gradient, 1.0)
    lengths = []
    for i in range(2):
        slope = float((gradient[i] * blurred[i]).sum())
        lengths.append(min(max(float(loss[i]) / slope, 1e-4), 2000.0))
        torch.testing.assert_close(step[i], lengths[i] * blurred[i])
    assert size != 1e-4 or lengths == [2000.0, 2000.0]
    assert size != 1e3 or lengths == [1e-4, 1e-4]


def test_value_no_gradient_means_no_step():
    assert torch.equal(
        newton_step(torch.tensor([2.0, 0.0]), torch.zeros(2, 2, 4, 4), 1.0), torch.zeros(2, 2, 4, 4)
    )


def test_value_the_loss_against_a_loop():
    goal, maps = goal_of(images([0, 1, 2, 2]), [1, 2, 3, 0], [0.2, 0.5, 0.9, 0.0]), torch.randn(4, 2, 8, 8)
    losses, _, _ = ask_teacher(teacher, goal, maps, sparsity=25.0)
    mask = maps_to_mask(maps, (16, 16))
    spoken = teacher(mask * goal.x + (1 - mask) * goal.partner).softmax(dim=1)
    for i in range(4):
        wanted = [0.0] * CLASSES
        wanted[int(goal.own[i])] += float(goal.lam[i])
        wanted[int(goal.other[i])] += 1 - float(goal.lam[i])
        expected = sum(q * math.log(q / float(p)) for q, p in zip(wanted, spoken[i], strict=True) if q > 0)
        expected += 25 * sum(m * (1 - m) for m in mask[i].flatten().tolist()) / 256
        assert float(losses[i]) == pytest.approx(expected, rel=1e-4)


def test_gradient_of_the_loss_by_finite_differences():
    goal, maps = goal_of(images([0, 3]), [1, 0], [0.3, 0.6]), torch.randn(2, 2, 4, 4)
    _, gradient, _ = ask_teacher(teacher, goal, maps, 5.0)
    for place in [(0, 0, 1, 2), (1, 1, 3, 0), (0, 1, 2, 2)]:
        change = torch.zeros_like(maps)
        change[place] = 0.01
        above, below = (
            ask_teacher(teacher, goal, maps + sign * change, 5.0)[0].double().sum() for sign in (1, -1)
        )
        assert float(gradient[place]) == pytest.approx(float(above - below) / 0.02, rel=0.02, abs=1e-3)


def test_value_the_goal_is_both_classes_on_top_in_any_order():
    goal = Goal(
        torch.zeros(5, 3, 2, 2),
        torch.zeros(5, 3, 2, 2),
        own=torch.tensor([0, 0, 0, 2, 2]),
        other=torch.tensor([1, 1, 1, 2, 2]),
        lam=torch.full((5,), 0.5),
    )
    logits = torch.tensor([[3.0, 2, 1], [2, 3, 1], [3, 1, 2], [1, 2, 3], [3, 1, 2]])
    assert goal.reached(logits).tolist() == [True, True, False, True, False]


def test_value_one_step_by_hand():
    x, lam = images([0, 1, 2]), torch.tensor([0.3, 0.5, 0.8])
    goal = goal_of(x, [2, 0, 1], lam.tolist())
    start = torch.zeros(3, 2, 8, 8)
    loss, gradient, _ = ask_teacher(teacher, goal, start, 25.0)
    expected = maps_to_mask(start - newton_step(loss, gradient, 1.0), (16, 16))
    mixed = mix(SuperMix(iterations=1), x, lam)
    torch.testing.assert_close(mixed.mask, expected)
    torch.testing.assert_close(mixed.pairing.lam, expected.mean(dim=(1, 2, 3)))


def test_value_the_teacher_recognises_both_images():
    x = images([0, 1, 2, 3, 4, 5] * 2)
    index = torch.arange(12).roll(1)
    lam = torch.linspace(0.2, 0.8, 12)
    mixed = mix(SuperMix(finished=1.0, sparsity=1.0), x, lam)
    goal = goal_of(x, index.tolist(), lam.tolist())
    assert goal.reached(teacher(mixed.x)).float().mean() > 0.9
    assert goal.reached(teacher(x)).float().mean() < 0.5


def test_value_lam_decides_which_image_shows_more():
    x = images([0, 1, 2, 3, 4, 5])
    little, much = (mix(SuperMix(iterations=1), x, torch.tensor([lam])).pairing.lam for lam in (0.1, 0.9))
    assert (little < much).all() and float((much - little).mean()) > 0.1


def test_value_what_is_done_is_frozen_and_costs_no_more_passes():
    """Every pair ends with the mask it has when it is first recognised, whatever the others still need."""
    x, lam = images([0, 1, 2, 3, 4, 5] * 2), torch.linspace(0.1, 0.9, 12)
    sizes = []

    def counting(mixed: torch.Tensor) -> torch.Tensor:
        sizes.append(len(mixed))
        return teacher(mixed)

    together = mix(SuperMix(finished=1.0, iterations=4), x, lam, counting)
    assert sizes[0] == sizes[1] == 12 and sizes[1:] == sorted(sizes[1:], reverse=True) and sizes[-1] < 12
    for i in range(12):
        pair = x[[i, (i - 1) % 12]]
        alone = SuperMix(finished=1.0, iterations=4)(
            pair, Pairing(torch.tensor([float(lam[i]), 1.0]), torch.tensor([1, 0])), Hints(teacher=teacher)
        )
        torch.testing.assert_close(alone.mask[0], together.mask[i], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("finished", "passes"), [(0.1, 2), (0.5, 2), (0.51, 6), (1.0, 6)])
def test_value_the_batch_stops_when_enough_is_done(finished, passes):
    """A teacher who always ranks classes 0, 1 on top: the two pairs of (0, 1) are done after one step."""
    x = images([0, 1, 2, 3])
    x[:, 0, 0, 0] = torch.tensor([0.0, 1, 2, 3])
    calls = []

    def stubborn(mixed: torch.Tensor) -> torch.Tensor:
        calls.append(len(mixed))
        if len(calls) == 1:
            return F.one_hot(mixed[:, 0, 0, 0].long(), 4).float()
        return torch.tensor([4.0, 3, 2, 1]) + 0 * mixed.sum(dim=(1, 2, 3))[:, None]

    pairing = Pairing(torch.tensor([0.5]), torch.tensor([1, 0, 3, 2]))
    SuperMix(finished=finished, iterations=6)(x, pairing, Hints(teacher=stubborn))
    assert len(calls) - 1 == passes
    assert calls[1:] == [4, 4, 2, 2, 2, 2][:passes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_lam_one_keeps_the_first_image(dtype, per_sample):
    x = images([0, 1, 2]).to(dtype)
    mixed = mix(SuperMix(iterations=2), x, torch.tensor([1.0, 0.5, 1.0]) if per_sample else torch.ones(1))
    kept = torch.tensor([True, not per_sample, True])
    assert torch.equal(mixed.x[kept], x[kept]) and (mixed.pairing.lam[kept] == 1).all()
    assert mixed.x.dtype == mixed.mask.dtype == dtype and mixed.pairing.lam.dtype == torch.float32
    assert kept.all() or (mixed.mask[1].min() < 1 and not torch.equal(mixed.x[1], x[1]))


def test_value_a_batch_that_is_not_mixed_is_not_shown_to_the_teacher_again():
    calls = []

    def counting(mixed: torch.Tensor) -> torch.Tensor:
        calls.append(len(mixed))
        return teacher(mixed)

    mix(SuperMix(), images([0, 1, 2]), torch.ones(3), counting)
    assert calls == [3]


@pytest.mark.parametrize("size", [(8, 8), (12, 20), (33, 9)])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_shape(batch, size):
    x = images(list(range(batch)), size)
    for lam in (torch.tensor([0.4]), torch.linspace(0.2, 0.7, batch)):
        mixed = mix(SuperMix(iterations=3), x, lam)
        assert mixed.x.shape == x.shape and mixed.x.isfinite().all()
        assert mixed.mask.shape == (batch, 1, *size) and mixed.pairing.lam.shape == (batch,)
        assert mixed.mask.min() >= 0 and mixed.mask.max() <= 1 and mixed.parents is None


def test_invariant_it_runs_without_gradients_around_it_and_leaves_the_teacher_alone():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(784, 5))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    x = images([0, 1, 2, 3]).requires_grad_()
    lam = torch.tensor([0.3, 0.4, 0.6, 0.7])
    with torch.no_grad():
        quiet = mix(SuperMix(iterations=5), x, lam, teacher_of(network))
    loud = mix(SuperMix(iterations=5), x, lam, teacher_of(network))
    assert torch.equal(quiet.x, loud.x) and not (quiet.mask == 0.5).all()
    assert network.training and all(p.grad is None and p.requires_grad for p in network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert x.grad is None and not quiet.x.requires_grad and not loud.mask.requires_grad


def test_gradient_reaches_both_images_by_their_weights():
    x = images([0, 1, 2]).requires_grad_()
    mixed = mix(SuperMix(iterations=3), x, torch.tensor([0.5]))
    (gradient,) = torch.autograd.grad(mixed.x.sum(), x)
    expected = mixed.mask + (1 - mixed.mask)[[1, 2, 0]]
    torch.testing.assert_close(gradient, expected.expand_as(x))


def test_value_lam_is_drawn_from_beta_three_three():
    lam = SuperMix(per_sample=True).draw(20_000, torch.Generator().manual_seed(0)).lam
    assert float(lam.mean()) == pytest.approx(0.5, abs=0.01)
    assert float(lam.var()) == pytest.approx(1 / 28, rel=0.05)  # 1 / (4 (2 alpha + 1))


def test_error_a_teacher_is_needed():
    with pytest.raises(ValueError, match="SuperMix needs teacher"):
        SuperMix()(images([0, 1]), Pairing(torch.tensor([0.5]), torch.tensor([1, 0])))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"grid": 0}, "mixup.grid must be at least 1, got 0."),
        ({"iterations": 0}, "mixup.iterations must be at least 1, got 0."),
        ({"sigma": 0.0}, "mixup.sigma must be positive, got 0.0."),
        ({"sparsity": -1.0}, "mixup.sparsity must not be negative, got -1.0."),
        ({"finished": 0.0}, r"mixup.finished must lie in \(0, 1\], got 0.0."),
        ({"finished": 1.5}, r"mixup.finished must lie in \(0, 1\], got 1.5."),
        ({"alpha": -1.0}, "mixup.alpha must be positive, got -1.0."),
    ],
)
def test_error_bad_settings(setting, message):
    with pytest.raises(ValueError, match=message):
        SuperMix(**setting)
