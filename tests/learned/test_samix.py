"""SAMix online: which gradient reaches which parameters, and what every setting does."""

import pytest
import torch
from torch import Tensor, nn

from samix.contract import Losses
from samix.core.mixed import blend
from samix.core.pairing import Pairing, draw_pairing
from samix.evaluate.retention import mixed_retention
from samix.learned import Adjusting, MaskLoss, MomentumCopy, Speed
from samix.learned.automix import AutoMixed
from samix.learned.losses import mask_loss, pbce
from samix.learned.mixer import MixerConfig
from samix.learned.samix import LearnedMixup, SAMix, bernoulli
from samix.losses import mixup_cross_entropy
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.mixups import MIXUPS
from samix.nn.zoo import build_encoder

CLASSES = 5
LIVELY = MixerConfig(init_std=0.5)


def batch(count: int = 6) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 3, 16, 16), torch.arange(count) % CLASSES


def build(objective: Objective | None = None, settings: type = LearnedMixup, **fields) -> SAMix:
    """A small model whose masks are far from constant and whose every parameter matters."""
    method = Supervised(
        build_encoder("small-resnet", width=4),
        linear_head(32, CLASSES),
        CLASSES,
        clean_head=linear_head(32, CLASSES),
        objective=objective or Objective(clean_weight=1.0),
    )
    for module in method.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)  # timm starts residual branches at 0
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.3)
    if settings is LearnedMixup:
        fields = {"mixer": LIVELY} | fields
    config = settings(**fields)
    return SAMix(method, config.mixer.build(16), config)


def gradients(loss: Tensor, module: nn.Module) -> list[Tensor | None]:
    return list(torch.autograd.grad(loss, list(module.parameters()), retain_graph=True, allow_unused=True))


def record_batches(module: nn.Module) -> list[int]:
    """The batch size of every call of a module."""
    sizes: list[int] = []
    module.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    return sizes


@pytest.mark.parametrize("settings", [LearnedMixup, AutoMixed])
def test_gradient_of_the_encoder_loss_reaches_exactly_the_method(settings):
    model = build(settings=settings)
    losses = model(*batch())
    for part in (model.method.encoder, model.method.head, model.method.clean_head):
        for grad in gradients(losses.encoder, part):
            assert grad is not None and grad.abs().max() > 0
    assert gradients(losses.encoder, model.mixer) == [None] * len(list(model.mixer.parameters()))


@pytest.mark.parametrize("settings", [LearnedMixup, AutoMixed])
def test_gradient_of_the_mixer_loss_reaches_exactly_the_mixer(settings):
    model = build(settings=settings)
    losses = model(*batch())
    assert gradients(losses.mixer, model.method) == [None] * len(list(model.method.parameters()))
    names = [name for name, _ in model.mixer.named_parameters()]
    for name, grad in zip(names, gradients(losses.mixer, model.mixer), strict=True):
        assert grad is not None, name
        if settings is LearnedMixup and name != "content.0.bias":  # batch norm takes this one out again
            assert grad.abs().max() > 0, name


def test_gradient_never_reaches_the_momentum_copy():
    model = build()
    model(*batch()).total.backward()
    assert not any(p.requires_grad for p in model.momentum.parameters())
    assert all(p.grad is None for p in model.momentum.parameters())
    assert all(p.grad is not None for p in model.method.parameters())


def test_gradient_of_the_sum_equals_the_two_separate_ones():
    model = build()
    losses = model(*batch())
    trained = nn.ModuleList([model.method, model.mixer])
    encoder, mixer = gradients(losses.encoder, trained), gradients(losses.mixer, trained)
    losses.total.backward()
    for parameter, a, b in zip(trained.parameters(), encoder, mixer, strict=True):
        assert (a is None) != (b is None)
        torch.testing.assert_close(parameter.grad, b if a is None else a, rtol=1e-5, atol=1e-7)


def test_gradient_the_mixer_learns_through_the_pictures_and_not_only_from_the_mask_loss():
    model = build(mask=MaskLoss(beta=0.0))
    grads = gradients(model(*batch()).mixer, model.mixer)
    assert max(float(grad.abs().max()) for grad in grads) > 1e-4


def test_gradient_gamma_moves_from_zero():
    model = build(mixer=MixerConfig(init_std=0.5, gamma=0.0))
    model(*batch()).total.backward()
    assert float(model.mixer.gamma.grad.abs()) > 0


def test_gradient_eta_turns_the_mixers_gradient():
    """O1: in the official code eta changes nothing."""
    x, y = batch()
    model, directions = build(mask=MaskLoss(beta=0.0)), []
    for eta in (0.1, 1.0):
        model.settings = LearnedMixup(mixer=LIVELY, mask=MaskLoss(beta=0.0), eta=eta)
        torch.manual_seed(3)
        grads = torch.cat([grad.flatten() for grad in gradients(model(x, y).mixer, model.mixer)])
        directions.append(grads / grads.norm())
    assert float(directions[0] @ directions[1]) < 0.9999


def mixer_step(model: SAMix, x: Tensor, y: Tensor, z: Tensor, progress: float) -> Losses:
    """The Mixer's step alone."""
    start = Losses(torch.zeros(()))
    return model.mixer_step(start, x, z, progress, lambda x_mix, pairing: model.judge(x_mix, pairing, x, y))


@pytest.mark.parametrize("progress", [0.0, 0.25, 1.0])
def test_value_the_mixer_objective(progress):
    model = build(eta=0.3, local=0.8, mask=MaskLoss(beta=0.2, beta_end=0.1, margin=0.05, variance=1.5))
    x, y = batch()
    with torch.no_grad():
        z = model.momentum.maps(x)
        torch.manual_seed(5)
        losses = mixer_step(model, x, y, z, progress)
        torch.manual_seed(5)
        pairing = draw_pairing(len(x), 2.0, per_sample=True)
        mask = model.mixer(z, pairing, (16, 16))
        logits = model.momentum.logits(blend(x, x[pairing.index], mask))
    log = losses.log
    local, globally = pbce(logits, y, pairing).mean(), mixup_cross_entropy(logits, y, pairing)
    masks = mask_loss(mask, pairing.lam, 0.05, 1.5)
    torch.testing.assert_close(losses.mixer, 0.8 * local + 0.3 * globally + (0.2 - 0.1 * progress) * masks)
    torch.testing.assert_close(torch.stack(log[:3]), torch.stack([local, globally, masks]))
    assert float(log.gamma) == model.mixer.gamma.item()
    torch.testing.assert_close(log.gap, (mask.mean(dim=(1, 2, 3)) - pairing.lam).abs().mean())
    torch.testing.assert_close(log.deviation, mask.flatten(1).std(dim=1).mean())


def test_value_the_log_is_detached_and_has_no_gamma_without_one():
    log = build()(*batch()).log
    assert not any(value.requires_grad for value in log)
    assert build(settings=AutoMixed)(*batch()).log.gamma.isnan()


def test_value_encoder_and_mixer_draw_pairs_of_their_own():
    model, pairings = build(), []
    model.mixer.register_forward_pre_hook(lambda module, inputs: pairings.append(inputs[1]))
    losses = model(*batch(40))
    encoder, mixer = pairings
    assert torch.equal(losses.lam, encoder.lam)
    assert not torch.equal(encoder.lam, mixer.lam) and not torch.equal(encoder.index, mixer.index)


def mixed_of(model: SAMix, lam: list[float], progress: float = 1.0):
    x, _ = batch(4)
    with torch.no_grad():
        z = model.momentum.maps(x)
    return x, model.mix(x, z, Pairing(torch.tensor(lam), torch.tensor([1, 2, 3, 0])), progress)


@pytest.mark.parametrize("lam", [[0.4], [0.2, 0.4, 0.6, 0.8]], ids=["one lam", "lam per sample"])
def test_value_the_encoders_masks_are_adjusted_to_the_encoders_lam(lam):
    x, mixed = mixed_of(build(), lam)
    assert mixed.mask.std(dim=(1, 2, 3)).min() > 1e-3
    torch.testing.assert_close(mixed.mask.mean(dim=(1, 2, 3)), torch.tensor(lam).expand(4), rtol=0, atol=1e-5)
    torch.testing.assert_close(mixed.x, blend(x, x[mixed.pairing.index], mixed.mask))
    assert not mixed.mask.requires_grad and torch.equal(mixed.pairing.lam, torch.tensor(lam))


def test_value_without_adjusting_the_mask_is_the_mixers():
    model = build(adjusting=Adjusting(prob=0.0))
    model.mixer.eval()
    x, _ = batch(4)
    pairing = Pairing(torch.tensor([0.4]), torch.tensor([1, 2, 3, 0]))
    with torch.no_grad():
        z = model.momentum.maps(x)
        torch.testing.assert_close(model.mix(x, z, pairing).mask, model.mixer(z, pairing, (16, 16)))


@pytest.mark.parametrize("lam", [0.05, 0.08, 0.95])
def test_value_extreme_lam_gives_plain_mixup(lam):
    _, mixed = mixed_of(build(), [lam])
    torch.testing.assert_close(mixed.mask.expand(4, 1, 16, 16), torch.full((4, 1, 16, 16), lam))


def test_value_the_lam_margin_is_decided_per_sample():
    _, mixed = mixed_of(build(adjusting=Adjusting(lam_margin=0.2)), [0.1, 0.5, 0.9, 0.3])
    constant = mixed.mask.std(dim=(1, 2, 3)) < 1e-6
    assert constant.tolist() == [True, False, True, False]


def test_value_warmup_gives_plain_mixup_while_the_mixer_learns():
    model = build(adjusting=Adjusting(warmup=0.5))
    _, early = mixed_of(model, [0.4], progress=0.49)
    _, late = mixed_of(model, [0.4], progress=0.5)
    assert (early.mask == torch.tensor(0.4)).all() and late.mask.std() > 1e-3
    losses = model(*batch(), progress=0.1)
    assert losses.mixer is not None and losses.mixer.requires_grad


def test_value_behind_mix_until_the_classifier_learns_alone():
    model = build(Objective(mix_until=0.6))
    painted = record_batches(model.mixer)
    model.eval()  # batch statistics stay as they are
    x, y = batch()
    losses = model(x, y, progress=0.6)
    assert painted == [] and losses.mixer is None and losses.lam is None
    torch.testing.assert_close(losses.total, model.method.loss.clean(model.method.logits(x), y))
    assert model(x, y, progress=0.59).mixer is not None


def test_value_settings_of_speed_run_a_part_of_the_batch():
    model = build(Objective(clean_weight=1.0, clean_fraction=0.5), speed=Speed(fraction=0.25))
    clean, mixed = record_batches(model.method.clean_head), record_batches(model.method.head)
    mixer = record_batches(model.mixer)
    model(*batch(12))
    assert (mixed, clean, mixer) == ([12], [6], [12, 3])


def test_value_without_clean_weight_the_clean_branch_does_not_run():
    model = build(Objective(clean_weight=0.0))
    runs = record_batches(model.method.encoder)
    losses = model(*batch())
    assert runs == [6] and gradients(losses.encoder, model.method.clean_head) == [None, None]


def test_value_without_mixer_probability_the_mixer_does_not_learn():
    model = build(speed=Speed(prob=0.0))
    runs = record_batches(model.mixer)
    losses = model(*batch())
    assert losses.mixer is None and losses.log is None and runs == [6]
    assert losses.total is losses.encoder


def test_value_coin():
    state = torch.get_rng_state()
    assert bernoulli(1.0) and not bernoulli(0.0)
    assert torch.equal(state, torch.get_rng_state()), "certain coins draw nothing"
    heads = sum(bernoulli(0.8) for _ in range(2000))
    assert 1530 < heads < 1670


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("binary", [False, True])
def test_value_any_batch(count, binary):
    model = build(Objective(clean_weight=1.0, binary=binary))
    losses = model(*batch(count))
    losses.total.backward()
    assert losses.total.isfinite()
    assert (losses.mixer is None) == (count == 1)
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_value_images_that_are_not_square():
    model = build()
    assert model(torch.randn(4, 3, 20, 28), torch.tensor([0, 1, 2, 3])).total.isfinite()


@pytest.mark.parametrize("binary", [False, True])
def test_error_labels_out_of_range(binary):
    x, _ = batch(4)
    with pytest.raises(ValueError, match="label 9 at position 3"):
        build(Objective(binary=binary))(x, torch.tensor([0, 1, 2, 9]))


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (torch.tensor([[0], [1], [2], [3]]), r"shape \[4\] for 4 images; got \[4, 1\] .*squeeze"),
        (torch.eye(6)[:4], r"got \[4, 6\] of torch.float32"),
        (torch.tensor([0, 1, 2]), r"got \[3\]"),
        (torch.tensor([0.0, 1.0, 2.0, 3.0]), "torch.float32"),
    ],
)
def test_error_labels_that_are_no_indices(labels, text):
    x, _ = batch(4)
    with pytest.raises(ValueError, match=text):
        build()(x, labels)


def test_value_bfloat16_autocast_gives_float32_losses():
    model = build()
    with torch.autocast("cpu", torch.bfloat16):
        losses = model(*batch())
    assert losses.encoder.dtype == losses.mixer.dtype == torch.float32
    losses.total.backward()
    assert all(p.grad.isfinite().all() for p in model.mixer.parameters())


@pytest.mark.parametrize(("progress", "momentum"), [(0.0, 0.5), (0.19, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_value_after_step_moves_the_copy(progress, momentum):
    model = build(copy=MomentumCopy(momentum=0.5, momentum_end=1.0, hold=0.2))
    with torch.no_grad():
        for parameter in model.method.parameters():
            parameter.add_(torch.randn_like(parameter))
    before = [p.clone() for p in model.momentum.parameters()]
    model.after_step(progress)
    for old, new, online in zip(before, model.momentum.parameters(), model.method.parameters(), strict=True):
        torch.testing.assert_close(new, momentum * old + (1 - momentum) * online.detach())


@pytest.mark.parametrize(("before", "after"), [(-0.3, 0.0), (1.7, 1.0), (0.4, 0.4)])
def test_value_after_step_projects_gamma(before, after):
    model = build()
    nn.init.constant_(model.mixer.gamma, before)
    model.after_step(0.0)
    assert model.mixer.gamma.item() == pytest.approx(after)


def test_value_the_copys_batch_norm_lives_on_its_own_passes():
    """Maps of the clean images stop behind layer 3; only the Mixer's pictures go all the way."""
    model = build()
    network = model.momentum.encoder.network
    model(*batch())
    assert int(network.bn1.num_batches_tracked) == 2
    assert int(network.layer4[0].bn1.num_batches_tracked) == 1
    own = {name: buffer.clone() for name, buffer in model.momentum.named_buffers()}
    assert not torch.equal(own["encoder.network.bn1.running_mean"], torch.zeros(4))
    for buffer in model.method.buffers():
        buffer.fill_(7)
    model.after_step(0.0)
    assert all(torch.equal(own[name], buffer) for name, buffer in model.momentum.named_buffers())


def test_value_an_optimiser_step_trains_both_and_the_copy_waits():
    model = build()
    optimiser = torch.optim.SGD([{"params": group} for group in model.parameter_groups().values()], lr=0.1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    model(*batch()).total.backward()
    optimiser.step()
    moved = {name.split(".")[0] for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"method", "mixer"}


def test_value_parameter_groups_hold_every_trained_parameter_once():
    model = build()
    groups = model.parameter_groups()
    assert list(groups) == ["encoder", "mixer"]
    listed = [id(p) for group in groups.values() for p in group]
    assert sorted(listed) == sorted(id(p) for p in model.parameters() if p.requires_grad)


def test_value_heads_of_method_and_copy():
    model, (x, _) = build().eval(), batch()
    heads = model.heads(x)
    assert list(heads) == ["mix_q", "one_q", "mix_k", "one_k"]
    torch.testing.assert_close(heads["mix_q"], heads["mix_k"])
    nn.init.zeros_(model.momentum.head.weight)
    assert not torch.allclose(model.heads(x)["mix_q"], model.heads(x)["mix_k"])


def test_value_automix_trains_on_mixup_cross_entropy_alone():
    model = build(settings=AutoMixed, mask=MaskLoss(beta=0.0))
    losses = model(*batch())
    torch.testing.assert_close(losses.mixer.detach(), losses.log.globally)


def test_value_defaults():
    model = SAMix(build().method, MixerConfig().build(16))
    assert model.settings == LearnedMixup() and model.settings.alpha == 2.0 and model.settings.eta == 0.5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 0.0),
        ("alpha", float("nan")),
        ("alpha", float("inf")),
        ("eta", -0.1),
        ("local", 2.0),
        ("speed.fraction", 0.0),
        ("speed.fraction", 1.2),
        ("speed.prob", 1.1),
        ("adjusting.prob", 1.5),
        ("adjusting.margin", -0.1),
        ("adjusting.lam_margin", 0.7),
        ("adjusting.warmup", -1.0),
        ("copy.momentum", 1.001),
        ("copy.momentum_end", -0.5),
        ("copy.hold", 3.0),
        ("mask.beta", -1.0),
        ("mask.beta_end", float("nan")),
        ("mask.margin", 2.0),
    ],
)
def test_error_bad_settings_are_refused_by_name(field, value):
    group, _, name = field.rpartition(".")
    kind = type(getattr(LearnedMixup(), group)) if group else LearnedMixup
    with pytest.raises(ValueError, match=rf"mixup\.{field} must .* got {value}"):
        kind(**{name: value})


def own_network(classes: int = 5) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, classes),
    )


def test_value_wrap_trains_a_network_of_ones_own():
    network = own_network()
    model = SAMix.wrap(network, "2", 5, LearnedMixup(eta=0.2), size=16)
    assert model.method.encoder.network is network and model.settings.eta == 0.2
    x, y = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 4])
    torch.testing.assert_close(model.eval().heads(x)["mix_q"], network(x))
    model.train()(x, y, 0.5).total.backward()
    assert all(p.grad is not None for group in model.parameter_groups().values() for p in group)


def test_value_wrap_with_a_clean_branch_learns_from_clean_images_too():
    x, y = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 4])
    found = []
    for weight in (0.0, 2.0):
        torch.manual_seed(0)
        objective = Objective(clean_weight=weight, clean_head=False)
        model = SAMix.wrap(own_network(), "2", 5, objective=objective, size=16)
        clean = nn.functional.cross_entropy(model.method.logits(x), y)
        torch.manual_seed(1)
        found.append(model(x, y, 0.5).encoder)
    torch.testing.assert_close(found[1] - found[0], 2 * clean)


@pytest.mark.parametrize("channels_last", [False, True])
def test_value_wrap_reads_tokens_and_maps_with_channels_last(channels_last):
    class Patches(nn.Module):
        """16 px as 4 x 4 patches of 6 channels: a map, or tokens behind a class token."""

        def __init__(self):
            super().__init__()
            self.embed, self.blocks, self.head = nn.Conv2d(3, 6, 4, 4), nn.Identity(), nn.Linear(6, 5)

        def forward(self, x):
            map_last = self.embed(x).permute(0, 2, 3, 1)
            tokens = map_last.flatten(1, 2)
            both = map_last if channels_last else torch.cat([tokens.mean(1, keepdim=True), tokens], dim=1)
            return self.head(self.blocks(both).flatten(1, -2).mean(1))

    model = SAMix.wrap(
        Patches(), "blocks", 5, size=16, channels_last=channels_last, prefix_tokens=0 if channels_last else 1
    )
    x = torch.randn(3, 3, 16, 16)
    expected = model.momentum.encoder.network.embed(x)
    torch.testing.assert_close(model.maps(x), expected)
    assert model(x, torch.tensor([0, 1, 4])).total.isfinite()


def test_value_wrap_with_a_second_head_for_clean_images():
    network = own_network()
    model = SAMix.wrap(network, "2", 5, objective=Objective(clean_weight=1.0), size=16, head="5")
    x, y = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 4])
    heads = model.eval().heads(x)
    assert set(heads) == {"mix_q", "one_q", "mix_k", "one_k"}
    torch.testing.assert_close(heads["mix_q"], network(x))  # the network stays whole
    features = network[:-1](x)
    torch.testing.assert_close(heads["one_q"], model.method.clean_head(features))
    torch.manual_seed(1)
    both = model.train()(x, y, 0.5)
    both.total.backward()
    assert all(p.grad is not None for group in model.parameter_groups().values() for p in group)
    members = [p for group in model.parameter_groups().values() for p in group]
    assert len(members) == len(set(members))  # the network's head is listed once
    clean = nn.functional.cross_entropy(model.method.clean_head(network[:-1](x)), y)
    model.method.objective = Objective()
    torch.manual_seed(1)
    torch.testing.assert_close(both.encoder - model(x, y, 0.5).encoder, clean, atol=1e-5, rtol=1e-5)


def test_error_wrap_a_second_head_needs_the_last_layer():
    with pytest.raises(ValueError, match=r"head='fc'.*clean_head=False"):
        SAMix.wrap(own_network(), "2", 5, objective=Objective(clean_weight=1.0), size=16)
    behind = nn.Sequential(*own_network(), nn.Softmax(dim=1))
    with pytest.raises(ValueError, match="'5' is not the network's last"):
        SAMix.wrap(behind, "2", 5, objective=Objective(clean_weight=1.0), size=16, head="5")


def test_value_wrap_of_a_network_in_eval_mode_has_a_copy_in_train_mode():
    model = SAMix.wrap(own_network().eval(), "2", 5, size=16)
    model(torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 4]))
    # The maps stop behind the norm, the Mixer's mixtures pass it too.
    assert model.momentum.encoder.network[1].num_batches_tracked == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("late", [False, True])
def test_value_wrap_in_other_precisions(dtype, late):
    network = own_network()
    model = SAMix.wrap(network, "2", 5, size=16).to(dtype) if late else None
    model = model or SAMix.wrap(network.to(dtype), "2", 5, size=16)
    losses = model(torch.randn(4, 3, 16, 16).to(dtype), torch.tensor([0, 1, 2, 4]), 0.5)
    losses.total.backward()
    assert all(p.grad is not None for group in model.parameter_groups().values() for p in group)
    assert losses.encoder.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_value_wrap_builds_the_mixer_where_the_network_is(monkeypatch):
    monkeypatch.setattr(Supervised, "check_head", lambda self, x: None)  # there are no numbers on meta
    model = SAMix.wrap(own_network().to("meta"), "2", 5, size=16)
    assert {p.device.type for p in model.parameters()} == {"meta"}


def test_error_wrap_a_network_in_ddp():
    network = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
    with pytest.raises(ValueError, match=r"DistributedDataParallel\(SAMix.wrap\(network"):
        SAMix.wrap(network, "2", 5)


def test_value_wrap_asks_a_transformer_for_its_prefix_and_norms_its_tokens():
    vit = build_encoder("small-vit", width=2, size=16).network
    network = nn.Sequential(vit, nn.Linear(12, 5))
    network.num_prefix_tokens = vit.num_prefix_tokens
    x = torch.randn(2, 3, 16, 16)
    raw = SAMix.wrap(network, "blocks.2", 5, size=16).maps(x)
    normed = SAMix.wrap(network, "blocks.2", 5, size=16, norm="norm").maps(x)
    assert raw.shape == (2, 12, 4, 4)
    torch.testing.assert_close(normed, vit.norm(raw.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))


@pytest.mark.parametrize("progress", [500.0, -0.1, 1.5, float("nan")])
def test_error_progress_is_a_share_of_training(progress):
    model = SAMix.wrap(own_network(), "2", 5, size=16)
    with pytest.raises(ValueError, match=r"progress is the share of training done, step / total"):
        model(torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 4]), progress)
    with pytest.raises(ValueError, match=r"progress is the share of training done, step / total"):
        model.after_step(progress)


def test_value_the_weight_of_the_mask_loss_stays_unless_it_has_an_end():
    assert [MaskLoss(beta=0.0).beta_at(p) for p in (0.0, 0.5, 1.0)] == [0, 0, 0]
    assert [MaskLoss(beta=0.4).beta_at(p) for p in (0.0, 0.5, 1.0)] == [0.4, 0.4, 0.4]
    assert [MaskLoss(beta=0.4, beta_end=0.0).beta_at(p) for p in (0.0, 0.5, 1.0)] == [
        0.4,
        0.2,
        0.0,
    ]


def test_error_wrap_a_network_with_other_classes():
    with pytest.raises(ValueError, match="gives 5 logits, but there are 7 classes"):
        SAMix.wrap(own_network(), "2", 7, size=16)


# ------------------------------------------------------------ what a trained Mixer does


class Colours(nn.Module):
    """A teacher that needs no training: how much there is of each of three colours."""

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.scale = nn.AvgPool2d(2), nn.Parameter(torch.tensor(20.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.pool(x).mean(dim=(2, 3))


def squares(count: int, side: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """A square of the class's colour somewhere on dark noise; pictures, classes and where the squares are."""
    y, objects = torch.randint(3, (count,)), torch.zeros(count, 1, side, side, dtype=torch.bool)
    for one in objects:
        top, left = torch.randint(side - 5, (2,)).tolist()
        one[0, top : top + 6, left : left + 6] = True
    colour = nn.functional.one_hot(y, 3).float()[:, :, None, None]
    return torch.where(objects, colour, 0.2 * torch.rand(count, 3, side, side)), y, objects


def test_value_a_trained_mixer_keeps_more_of_both_objects_than_mixup_and_cutmix():
    torch.manual_seed(0)
    model = SAMix.wrap(Colours(), "pool", 3, LearnedMixup(mixer=MixerConfig(reduction=1)), size=16)
    optimizer = torch.optim.SGD(model.mixer.parameters(), lr=0.3, momentum=0.9)
    for step in range(200):
        x, y, _ = squares(32)
        loss = mixer_step(model, x, y, model.maps(x), step / 200).mixer
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.mixer.project()
    x, y, objects = squares(200)
    pairing = Pairing(torch.tensor([0.5]), torch.arange(200).roll(1))
    kept = {"samix": mixed_retention(model.picture(x, y, pairing), objects).both.mean()}
    for name in ("mixup", "cutmix"):
        kept[name] = mixed_retention(MIXUPS[name]()(x, pairing), objects).both.mean()
    assert kept["samix"] > 0.6
    assert kept["mixup"] == pytest.approx(0.5)
    assert abs(kept["cutmix"] - 0.5) < 0.05


@pytest.mark.parametrize(
    "x", [torch.zeros(6, 16, 16), torch.zeros(6, 3, 16, 16, dtype=torch.uint8), torch.zeros(0, 3, 16, 16)]
)
def test_error_images_that_are_none(unchecked_shapes, x):
    with pytest.raises(
        ValueError, match=r"images must (be a float tensor \[B, C, H, W\]|have at least one picture.*); got"
    ):
        build()(x, torch.arange(len(x)))
