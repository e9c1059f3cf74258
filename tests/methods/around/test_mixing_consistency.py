"""AugMix inside a method: the loss of clean pictures and the consistency of three answers."""

import pytest
import torch
from torch import nn

from samix.core.shapes import Stats
from samix.losses.classification import jensen_shannon
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.mixups.augmix.policy import AugMix
from samix.mixups.base import Hints
from samix.nn.zoo import build_encoder

STATS = Stats((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
Y = torch.tensor([0, 3, 1, 3, 2])


def images(batch: int = 5) -> torch.Tensor:
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in STATS)
    return (torch.randint(256, (batch, 3, 16, 16)) / 255 - mean) / std


def build(policy: AugMix | None = None, kind=Mixing, **objective) -> Mixing:
    method = Supervised(
        build_encoder("small-resnet", width=4),
        linear_head(32, 5),
        5,
        objective=Objective(**objective),
    )
    nn.init.normal_(method.head.weight)
    return kind(method, policy or AugMix(), STATS)


@pytest.mark.parametrize("objective", [{}, {"smoothing": 0.1}, {"binary": True}])
def test_value_clean_loss_plus_weighted_divergence(objective):
    model, x = build(AugMix(jsd_weight=3.0), **objective), images()
    torch.manual_seed(1)
    losses = model(x, Y, 0.3)

    torch.manual_seed(1)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in STATS)
    hints = Hints(pixels=(x * std + mean).clamp(0, 1))
    one = model.policy(x, model.policy.draw(5), hints).x
    two = model.policy(x, model.policy.draw(5), hints).x
    logits = model.method.logits(torch.cat([x, one, two]))
    clean = model.method.loss.clean(logits[:5], Y)
    divergence = jensen_shannon(logits[:5], logits[5:10], logits[10:])
    assert divergence > 0.01
    torch.testing.assert_close(losses.total, clean + 3 * divergence)
    assert losses.mixer is None and losses.log is None


def test_value_one_pass_of_three_times_the_batch():
    model, x, seen = build(), images(), []
    model.method.encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(x, Y)
    assert len(seen) == 1
    clean, one, two = seen[0].chunk(3)
    assert torch.equal(clean, x)
    for a, b, c in zip(clean, one, two, strict=True):
        assert not torch.equal(a, b) and not torch.equal(a, c) and not torch.equal(b, c)


def test_value_without_divergence_it_is_one_augmented_view():
    policy, x, seen = AugMix(jsd_weight=0.0), images(), []
    model = build(policy)
    model.method.encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    torch.manual_seed(1)
    loss = model(x, Y).total
    assert [len(batch) for batch in seen] == [5] and not torch.equal(seen[0], x)
    expected = model.method.loss.clean(model.method.logits(seen[0]), Y)
    torch.testing.assert_close(loss, expected)
    torch.manual_seed(1)
    torch.testing.assert_close(Mixing(model.method, policy, STATS)(x, Y).total, loss)


def test_value_untouched_views_leave_the_clean_loss():
    model, x = build(AugMix(prob=0.0)), images()
    expected = model.method.loss.clean(model.method.logits(torch.cat([x, x, x]))[:5], Y)
    torch.testing.assert_close(model(x, Y).total, expected)


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("jsd_weight", [0.0, 12.0])
def test_value_any_batch(batch, jsd_weight):
    model = build(AugMix(jsd_weight=jsd_weight))
    assert model(images(batch), Y[:batch]).total.isfinite()


def test_gradient_reaches_encoder_and_head():
    model = build()
    model(images(), Y).total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_value_heads_and_parameters_are_the_methods():
    model, x = build().eval(), images(2)
    assert torch.equal(model.heads(x)["mix_q"], model.method.logits(x))
    assert len(model.parameter_groups()["encoder"]) == len(list(model.parameters()))


def test_error_a_second_clean_branch_is_refused():
    with pytest.raises(ValueError, match="objective.clean_weight must be 0, got 0.5"):
        build(clean_weight=0.5)
    assert build(AugMix(jsd_weight=0.0), clean_weight=0.5)(images(), Y).total.isfinite()


def test_error_labels_out_of_range():
    with pytest.raises(ValueError, match="label 7 at position 2"):
        build()(images(3), torch.tensor([0, 1, 7]))


def test_error_normalised_images_without_their_statistics():
    model = build()
    model.stats = None
    with pytest.raises(ValueError, match="pass mean= and std="):
        model(images(), Y)
