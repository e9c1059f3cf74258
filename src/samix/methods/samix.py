"""SAMix online: an encoder and a Mixer that train each other (SAMix Eqs. (5), (12)-(14)).

Everything the Mixer needs runs through a momentum copy of the method that takes no gradient, and the
encoder learns from detached masks. So the two objectives have disjoint gradients, and one backward of
their sum equals the alternating updates of Eqs. (12) and (13). Differs from the official code: eta
works (O1), the encoder's mask is adjusted to the encoder's lam (O2), any batch size (O15).
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from samix.losses import EtaBalanced, eta_balanced, mask_loss, mask_mean_loss
from samix.methods.base import Losses, MixerLog
from samix.methods.hints import frozen
from samix.methods.supervised import Objective, Supervised, part_of
from samix.mixups.adjust import adjust_mask
from samix.mixups.mixed import Mixed, blend, blend_pairs, partners
from samix.mixups.mixup import constant_mask
from samix.nn.encoder import Encoder
from samix.nn.mixer import Mixer, MixerConfig
from samix.nn.momentum import momentum_copy, momentum_update
from samix.pairing import Pairing, as_image_weight, check_alpha, draw_pairing
from samix.schedules import held_cosine, linear
from samix.typing import Images, Labels, Logits, Maps, Mask


@dataclass(frozen=True, kw_only=True)
class LearnedMixup:
    """How an online Mixer is built, trained and used.

    The defaults are SAMix's, made robust for short runs on few pictures; the paper's own first weights of the
    Mixer, mask loss and momentum, which suit 100,000 steps, are in `recipes.base.as_published`.
    """

    mixer: MixerConfig = field(default_factory=MixerConfig)
    """The parts of the Mixer."""
    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha), for the encoder's and the Mixer's pairs."""
    per_sample: bool = True
    """One lam per pair. One lam per batch would be a common factor of all features, which the batch norm
    of the content takes out again: in training the content would be deaf to lam."""
    local: float = 1.0
    """Weight of the local term of Eq. (8); AutoMix trains on the global term alone."""
    eta: float = 0.5
    """Weight of the global term of Eq. (8)."""
    beta: float = 1.0
    """Weight of the mask loss, at the start of training if beta_end is another."""
    beta_end: float | None = None
    """Weight of the mask loss at the end, reached linearly (the paper: 0, and masks drift from lam); null:
    the weight stays."""
    mask_margin: float = 0.0
    """How far mean(mask) may be from lam before the mask loss counts it."""
    variance_weight: float = 0.5
    """How much the mask loss rewards the mask's variance."""
    adjust: float = 1.0
    """Probability per batch that the encoder's masks are adjusted to mean lam."""
    adjust_margin: float = 0.0
    """How far mean(mask) may be from lam before a mask is adjusted (self-supervised: .1)."""
    lam_margin: float = 0.08
    """Where min(lam, 1 - lam) is at most this, the encoder sees plain Mixup."""
    warmup: float = 0.0
    """Share of training in which the encoder sees plain Mixup while the Mixer already learns."""
    mixer_fraction: float = 1.0
    """Part of the batch that trains the Mixer (speed; the paper: 1)."""
    mixer_probability: float = 1.0
    """Probability per batch of training the Mixer at all (official ViT runs: 0.8)."""
    momentum: float = 0.99
    """Momentum of the copy at the start, Eq. (14): 1 / (1 - momentum) should be few of the run's steps."""
    momentum_end: float = 0.999
    """Momentum of the copy at the end of training."""
    momentum_hold: float = 0.1
    """Share of training before the momentum begins to rise."""

    def __post_init__(self) -> None:
        check_alpha(self.alpha, "mixup.alpha")
        if not 0 < self.mixer_fraction <= 1:
            raise ValueError(f"mixup.mixer_fraction must lie in (0, 1], got {self.mixer_fraction}.")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"mixup.{name} must lie in [0, 1], got {getattr(self, name)}.")
        for name in ("beta", "beta_end"):
            if (weight := getattr(self, name)) is not None and not weight >= 0:
                raise ValueError(f"mixup.{name} must not be negative, got {weight}.")
        if not self.lam_margin <= 0.5:
            raise ValueError(f"mixup.lam_margin must be at most 0.5 (-1: never), got {self.lam_margin}.")

    def mask_weight(self, progress: float) -> float:
        """The weight of the mask loss when this share of training is done."""
        return linear(progress, self.beta, self.beta if self.beta_end is None else self.beta_end)

    def draw(self, batch: int, device: torch.device | None = None) -> Pairing:
        """Draws who is mixed with whom and how much."""
        return draw_pairing(batch, self.alpha, per_sample=self.per_sample, device=device)


SHARES = (
    "local",
    "eta",
    "adjust",
    "warmup",
    "mixer_probability",
    "momentum",
    "momentum_end",
    "momentum_hold",
    "mask_margin",
    "adjust_margin",
)
"""Settings of `LearnedMixup` that are probabilities, weights, margins or shares of training."""


@dataclass(frozen=True, kw_only=True)
class AutoMixed(LearnedMixup):
    """AutoMix (arXiv 2103.13027): MixBlock, mixup cross-entropy, mask loss on the mean only."""

    mixer: MixerConfig = field(
        default_factory=lambda: MixerConfig(
            encoding="concat", attention="cross", content="linear", upsample="nearest"
        )
    )
    per_sample: bool = False
    local: float = 0.0
    eta: float = 1.0
    beta: float = 0.1
    beta_end: float = 0.0
    mask_margin: float = 0.1
    variance_weight: float = 0.0


class LearnedMixing(nn.Module):
    """A Mixer beside what it reads from: masks for the encoder, and pictures of them."""

    def __init__(self, mixer: Mixer, settings: LearnedMixup) -> None:
        super().__init__()
        self.mixer, self.settings = mixer, settings

    @property
    def read_encoder(self) -> Encoder:
        """The frozen encoder whose maps the Mixer reads."""
        raise TypeError(f"{type(self).__name__} must define read_encoder.")

    def maps(self, x: Images) -> Maps:
        """The maps of clean images that the Mixer reads."""
        return self.read_encoder.maps(x)

    @torch.no_grad()
    def mix(
        self, x: Images, z: Maps, pairing: Pairing, progress: float = 1.0, *, adjust: bool | None = None
    ) -> Mixed:
        """Images for the encoder: learned masks adjusted to lam, plain Mixup where that is safer.

        `adjust` decides instead of a coin whether masks are adjusted.
        """
        s, size = self.settings, (x.shape[-2], x.shape[-1])
        mask = constant_mask(size, pairing.lam.to(x))
        if progress >= s.warmup:
            learned = self.mixer(z, pairing, size)
            if bernoulli(s.adjust) if adjust is None else adjust:
                learned = adjust_mask(learned, pairing.lam, s.adjust_margin)
            extreme = torch.minimum(pairing.lam, 1 - pairing.lam) <= s.lam_margin
            mask = torch.where(as_image_weight(extreme), mask, learned.to(x))
        return Mixed(blend_pairs(x, pairing.index, mask), mask, pairing)

    @torch.no_grad()
    def picture(self, x: Images, y: Labels, pairing: Pairing) -> Mixed | None:
        """The batch as the Mixer in eval mode mixes it, adjusted if the encoder sees that more often."""
        with frozen(self):
            return self.mix(x, self.maps(x), pairing, adjust=self.settings.adjust >= 0.5)


class SAMix(LearnedMixing):
    """A method, a Mixer and the method's momentum copy."""

    def __init__(self, method: Supervised, mixer: Mixer, settings: LearnedMixup | None = None) -> None:
        super().__init__(mixer, settings or LearnedMixup())
        # In train mode whatever the network was in: eval mode would keep its first batch statistics for good.
        self.method, self.momentum = method, momentum_copy(method).train()

    @classmethod
    def wrap(
        cls,
        network: nn.Module,
        layer: str,
        classes: int,
        settings: LearnedMixup | None = None,
        *,
        objective: Objective | None = None,
        size: int = 32,
        channels_last: bool = False,
        prefix_tokens: int | None = None,
        norm: str | None = None,
        head: str | None = None,
    ) -> "SAMix":
        """SAMix around a classifier (images -> logits) of your own; the Mixer reads the map of `layer`.

        `Objective(clean_weight=1)` adds the paper's clean branch with a linear head of its own beside your
        classifier's last layer, `head`; with `clean_head=False` they share it.
        `size` is a picture size that the network accepts: one black picture tells the map's channels. A layer
        may give maps [B, h, w, C] (`channels_last`), or tokens behind `prefix_tokens` that are no patches
        (None: what the network says of itself, as timm's do); `norm` names the layer that normalises tokens
        before the network's head.
        """
        if isinstance(network, nn.parallel.DistributedDataParallel):
            raise ValueError(
                "the Mixer would lie outside DistributedDataParallel, and every process would train another. "
                "Wrap the bare network, then the whole: DistributedDataParallel(SAMix.wrap(network, ...))."
            )
        if prefix_tokens is None:
            prefix_tokens = getattr(network, "num_prefix_tokens", 0)
        encoder = Encoder(
            network, layer, channels_last=channels_last, prefix_tokens=prefix_tokens, norm=norm, head=head
        )
        method = Supervised.around(encoder, classes, objective, size)
        settings, (channels, _) = settings or LearnedMixup(), encoder.probe(size)
        return cls(method, settings.mixer.build(channels).to(encoder.black(size).device), settings)

    def forward(self, x: Images, y: Labels, progress: float = 0.0) -> Losses:
        """Both objectives of Eq. (5) for one batch."""
        self.method.check(x, y)
        s = self.settings
        with torch.no_grad():
            z = self.maps(x)  # [B, C, h, w] of the clean images

        # The encoder learns from fixed masks, Eq. (12).
        mixed = self.mix(x, z, s.draw(len(x), x.device), progress)
        encoder = self.method.mixed_loss(self.method.logits(mixed.x), mixed, x, y)

        # The Mixer learns through the frozen momentum copy, Eq. (13).
        count = part_of(len(x), s.mixer_fraction)
        if count < 2 or not bernoulli(s.mixer_probability):
            return Losses(encoder, lam=mixed.pairing.lam)
        mixer, log = self.mixer_objective(x[:count], y[:count], z[:count], progress)
        return Losses(encoder, mixer, mixed.pairing.lam, log)

    @property
    def read_encoder(self) -> Encoder:
        """That of the momentum copy."""
        return self.momentum.encoder

    def mixer_objective(self, x: Images, y: Labels, z: Maps, progress: float) -> tuple[Tensor, MixerLog]:
        """l_+ + eta l_-, Eq. (8), on the momentum copy's logits, plus beta times the mask loss."""
        s = self.settings
        pairing = s.draw(len(x), x.device)
        mask = self.mixer(z, pairing, (x.shape[-2], x.shape[-1]))
        logits = self.momentum.logits(blend(x, partners(x, pairing.index), mask.to(x)))
        generation = eta_balanced(logits, y, pairing, s.eta, s.local)
        masks = mask_loss(mask, pairing.lam, s.mask_margin, s.variance_weight)
        loss = generation.total + s.mask_weight(progress) * masks
        return loss, vital_signs(self.mixer, mask, pairing, generation, masks)

    def after_step(self, progress: float) -> None:
        """Projects gamma into [0, 1] and moves the momentum copy, Eq. (14)."""
        s = self.settings
        self.mixer.project()
        momentum = held_cosine(progress, s.momentum, s.momentum_end, s.momentum_hold)
        momentum_update(self.momentum, self.method, momentum)

    def heads(self, x: Images) -> dict[str, Logits]:
        """The online heads and, as 'mix_k' and 'one_k', those of the momentum copy."""
        copies = {name.replace("_q", "_k"): v for name, v in self.momentum.heads(x).items()}
        return self.method.heads(x) | copies

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's parameters and the Mixer's; the momentum copy is not trained."""
        return self.method.parameter_groups() | {"mixer": list(self.mixer.parameters())}


def bernoulli(probability: float) -> bool:
    """A coin from torch's generator; certain at 0 and 1 without drawing."""
    return probability >= 1 or (probability > 0 and bool(torch.rand(()) < probability))


@torch.no_grad()
def vital_signs(
    mixer: Mixer, mask: Mask, pairing: Pairing, generation: EtaBalanced, masks: Tensor
) -> MixerLog:
    """What the log tells about a Mixer's health."""
    gamma = mixer.gamma
    return MixerLog(
        local=generation.local.detach(),
        globally=generation.globally.detach(),
        mask=masks.detach(),
        gamma=mask.new_tensor(float("nan")) if gamma is None else gamma.detach().clone(),
        gap=mask_mean_loss(mask, pairing.lam, margin=0.0),
        deviation=mask.std(dim=(1, 2, 3)).mean(),
    )
