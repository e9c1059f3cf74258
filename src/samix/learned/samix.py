"""SAMix online: an encoder and a Mixer that train each other (Eq. (5); App. A.2, Eqs. (12)-(14)).

Everything the Mixer needs runs through a momentum copy that takes no gradient, and the encoder learns from
detached masks. So the two objectives have disjoint gradients, and one backward of their sum equals the
alternating updates of Eqs. (12) and (13). `LearnedMixing` holds what every learned mixup shares; `SAMix`
joins a classifier.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.contract import Around, Context, Losses, Model
from samix.core.checks import check_kind, check_share
from samix.core.mixed import Mixed, blend, blend_pairs, check_batch, check_finite, partners
from samix.core.pairing import Pairing, check_alpha, draw_pairing
from samix.core.renamed import OLD_NAMES, accept_old_names, read_old_name
from samix.core.schedules import held_cosine
from samix.core.shapes import AnyLabels, Images, Logits, Maps, Mask, Scalar, Size
from samix.learned.losses import EtaBalanced, MaskLoss, eta_balanced, evidence_loss, mask_loss, vital_signs
from samix.learned.mixer import Adjusting, Mixer, MixerConfig, bernoulli
from samix.learned.speed import Speed
from samix.learned.wrapping import check_network, warn_of_one_place
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised, part_of
from samix.nn.conventions import count_prefix_tokens
from samix.nn.encoder import Encoder, momentum_copy, momentum_update
from samix.nn.frozen import freeze, run_frozen


@dataclass(frozen=True, kw_only=True)
class MomentumCopy:
    """The copy that the Mixer reads and learns through, Eq. (14)."""

    momentum: float = 0.99
    """Momentum of the copy at the start: 1 / (1 - momentum) should be few of the run's steps."""
    momentum_end: float = 0.999
    """Momentum of the copy at the end of training."""
    hold: float = 0.1
    """Share of training before the momentum begins to rise."""

    def __post_init__(self) -> None:
        check_share(self, "mixup.copy", "momentum", "momentum_end", "hold")

    def momentum_at(self, progress: float) -> float:
        """The momentum when this share of training is done."""
        return held_cosine(progress, self.momentum, self.momentum_end, self.hold)


@dataclass(frozen=True, kw_only=True)
class MixerTraining:
    """How an online Mixer is built, trained and used: what all learned mixups share.

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
    mask: MaskLoss = field(default_factory=MaskLoss)
    """The mask loss."""
    adjusting: Adjusting = field(default_factory=Adjusting)
    """Which of the encoder's masks are adjusted to lam."""
    copy: MomentumCopy = field(default_factory=MomentumCopy)
    """The momentum copy."""
    speed: Speed = field(default_factory=Speed)
    """What of the Mixer's work is left out."""

    mixes: ClassVar[bool] = True
    learned: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_kind(self, "mixup", mixer=MixerConfig, mask=MaskLoss, adjusting=Adjusting)
        check_kind(self, "mixup", copy=MomentumCopy, speed=Speed)
        check_alpha(self.alpha, "mixup.alpha")
        check_share(self, "mixup", "local", "eta")

    def __getattr__(self, name: str) -> Any:
        return read_old_name(self, name, OLD_NAMES)

    def draw(self, batch: int, device: torch.device | None = None) -> Pairing:
        """Draws who is mixed with whom and how much."""
        return draw_pairing(batch, self.alpha, per_sample=self.per_sample, device=device)


@accept_old_names(OLD_NAMES)
@dataclass(frozen=True, kw_only=True)
class LearnedMixup(MixerTraining):
    """SAMix beside a classifier."""

    def build(self, method: Supervised, context: Context) -> "SAMix":
        """A fresh Mixer and the method's momentum copy, beside the method."""
        return SAMix(method, self.mixer.build(context.channels), self)


class Judgement(NamedTuple):
    """What the frozen copy makes of the Mixer's mixtures."""

    generation: EtaBalanced
    """Eq. (8)."""
    head: Scalar | None = None
    """The loss of a head that learns from these mixtures, too; it reaches that head alone (SAMix-C)."""


AnyMixing = TypeVar("AnyMixing", bound="LearnedMixing")


class LearnedMixing(Around):
    """A Mixer beside a method: masks for the encoder, the Mixer's own step, and pictures of both."""

    masks_pairs = True  # type: ignore[assignment]
    reader: ClassVar[Callable[[str | PathLike[str]], Model]]
    """Loads the model of a run folder; the package sets it, because files are beyond this room."""

    def __init__(self, method: nn.Module, mixer: Mixer, settings: MixerTraining) -> None:
        super().__init__(method)
        self.mixer, self.settings = mixer, settings

    @classmethod
    def load(cls: type[AnyMixing], run: str | PathLike[str]) -> AnyMixing:
        """The trained model of a run folder, in eval mode: to predict, to mix, or to go on training.

        It is what the last checkpoint holds, of a run that is finished or not; no data is read. AutoMix is a
        `SAMix` too, with other settings. The Mixer alone, as a policy: `samix.load_mixer(run)`.
        """
        model = LearnedMixing.reader(run)
        if not isinstance(model, cls):
            raise ValueError(
                f"{run} holds a {type(model).__name__}, not a {cls.__name__}. `samix.load_model` loads a run "
                "of any kind, `samix.load_classifier` the classifier of any with labels."
            )
        return model

    @property
    def frozen_copy(self) -> Any:
        """What the Mixer learns through: a copy without gradients."""
        raise TypeError(f"{type(self).__name__} must define frozen_copy.")

    @property
    def followed(self) -> nn.Module | None:
        """What `frozen_copy` follows after each step; None where the method moves it itself."""
        raise TypeError(f"{type(self).__name__} must define followed.")

    @property
    def read_encoder(self) -> Encoder:
        """The encoder whose maps the Mixer reads: the frozen copy's."""
        return self.frozen_copy.encoder

    def maps(self, x: Images) -> Maps:
        """The maps of clean images that the Mixer reads."""
        return self.read_encoder.maps(x)

    def paint(self, z: Maps, pairing: Pairing, size: Size) -> Mask:
        """The Mixer's masks, before they are adjusted to lam."""
        return self.mixer(z, pairing, size)

    @torch.no_grad()
    def mix(
        self, x: Images, z: Maps, pairing: Pairing, progress: float = 1.0, *, adjust: bool | None = None
    ) -> Mixed:
        """Images for the encoder: learned masks adjusted to lam, plain Mixup where that is safer.

        `adjust` decides instead of a coin whether masks are adjusted.
        """
        s, size = self.settings.adjusting, x.shape[-2:]
        mask = pairing.lam.to(x).view(-1, 1, 1, 1).expand(-1, 1, *size)
        if progress >= s.warmup:
            learned = self.mixer(z, pairing, size)
            if bernoulli(s.prob) if adjust is None else adjust:
                learned = s.adjust(learned, pairing.lam)
            extreme = torch.minimum(pairing.lam, 1 - pairing.lam) <= s.lam_margin
            mask = torch.where(extreme.view(-1, 1, 1, 1), mask, learned.to(x))
        return Mixed(blend_pairs(x, pairing.index, mask), mask, pairing)

    def mixer_step(
        self,
        losses: Losses,
        x: Images,
        z: Maps,
        progress: float,
        judge: Callable[[Images, Pairing], Judgement],
    ) -> Losses:
        """The losses with the Mixer's, Eq. (13): paint mixtures of x, let the frozen copy judge them.

        L_phi = l_eta + beta (mask loss), on as many of the images x with maps z as `settings.speed` says;
        `judge` says how the frozen copy sees these first images of the batch, mixed under a pairing.
        """
        s = self.settings
        count = part_of(len(x), s.speed.fraction)
        if count < 2 or not bernoulli(s.speed.prob):
            return losses
        pairing = draw_pairing(count, s.alpha, per_sample=s.per_sample, device=x.device)
        x, mask = x[:count], self.mixer(z[:count], pairing, x.shape[-2:])
        generation, head = judge(blend(x, partners(x, pairing.index), mask.to(x)), pairing)
        masks = mask_loss(mask, pairing.lam, s.mask.margin, s.mask.variance)
        log = vital_signs(mask, pairing.lam, generation, masks, self.mixer.encoding.gamma)
        mixer = generation.total + s.mask.beta_at(progress) * masks
        if s.mask.evidence:
            mixer = mixer + s.mask.evidence * evidence_loss(mask, self.evidence(x), pairing)
        encoder = losses.encoder if head is None else losses.encoder + head
        return losses._replace(encoder=encoder, mixer=mixer, log=log)

    @torch.no_grad()
    def evidence(self, x: Images) -> Tensor:
        """Where the frozen copy's last map is strong, on pictures enlarged by `settings.mask.zoom`."""
        sides = [round(self.settings.mask.zoom * side) for side in x.shape[-2:]]
        large = F.interpolate(x, sides, mode="bilinear", align_corners=False)
        return run_frozen(self.frozen_copy.encoder, lambda encoder: encoder.energy(large))

    def after_step(self, progress: float) -> None:
        """Projects gamma into [0, 1] and moves the momentum copy, Eq. (14)."""
        copy, source, momentum = self.frozen_copy, self.followed, self.settings.copy.momentum_at(progress)
        self.method.after_step(progress)
        self.mixer.project()
        if source is not None:
            momentum_update(copy, source, momentum)

    @torch.no_grad()
    def picture(self, x: Images, y: Tensor, pairing: Pairing) -> Mixed | None:
        """The batch as the Mixer in eval mode mixes it, adjusted if the encoder sees that more often."""
        with freeze(self):
            return self.mix(x, self.maps(x), pairing, adjust=self.settings.adjusting.prob >= 0.5)

    def explain(self, z: Maps, pairing: Pairing) -> tuple[Tensor, Tensor]:
        """The Mixer's content map and its attention averaged over the asking positions, both [B, h, w]."""
        content, attention = self.mixer.parts(z.float(), pairing)
        return content[:, 0], attention.mean(dim=1).view(len(z), *z.shape[-2:])

    def mixer_weights(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The Mixer together with the encoder that it reads, and the Mixer's settings as plain values."""
        parts = {"mixer": self.mixer, "encoder": self.read_encoder.network}
        weights = {f"{part}.{name}": w for part, net in parts.items() for name, w in net.state_dict().items()}
        return weights, asdict(self.settings.mixer)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's parameters and the Mixer's; the frozen copy is not trained."""
        return self.method.parameter_groups() | {"mixer": list(self.mixer.parameters())}


class SAMix(LearnedMixing):
    """A classifier, a Mixer and the classifier's momentum copy."""

    method: Supervised
    momentum: Supervised
    defaults: ClassVar[type[LearnedMixup]] = LearnedMixup
    """The settings where none are given."""

    def __init__(self, method: Supervised, mixer: Mixer, settings: MixerTraining | None = None) -> None:
        super().__init__(method, mixer, settings or self.defaults())
        self.settings.speed.check(method.objective)
        # In train mode whatever the network was in: eval mode would keep its first batch statistics for good.
        self.momentum = momentum_copy(method).train()

    @classmethod
    def wrap(
        cls,
        network: nn.Module,
        layer: str,
        classes: int,
        settings: LearnedMixup | None = None,
        *,
        objective: Objective | None = None,
        size: int | Size = 32,
        channels_last: bool = False,
        prefix_tokens: int | None = None,
        norm: str | None = None,
        head: str | None = None,
    ) -> "SAMix":
        """SAMix around a classifier (images -> logits) of your own; the Mixer reads the map of `layer`.

        `settings` of type `AutoMixed` or `AdAutoMixed` make it AutoMix or AdAutoMix.
        `Objective(clean_weight=1)` adds the paper's clean branch with a linear head of its own beside your
        classifier's last layer, `head`; with `clean_head=False` they share it.
        `size` is a picture size that the network accepts, one number or height and width: one black picture
        tells the map's channels. A layer may give maps [B, h, w, C] (`channels_last`), or tokens behind
        `prefix_tokens` that are no patches (None: found out, for networks of timm, torchvision and
        transformers); `norm` names the layer that normalises tokens before the network's head.

        >>> network = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
        >>> model = SAMix.wrap(network, layer="1", classes=10)
        >>> losses = model(torch.rand(4, 3, 32, 32), torch.arange(4), progress=0.0)
        >>> losses.total.backward()  # once for both; then optimizer.step() and model.after_step(progress)
        >>> network[0].weight.grad.shape, model.mixer.gamma.grad.shape
        (torch.Size([8, 3, 4, 4]), torch.Size([]))
        >>> model.eval()(torch.rand(4, 3, 32, 32)).shape  # in eval mode, without labels: the network's logits
        torch.Size([4, 10])
        """
        check_network(network)
        settings, objective = settings or cls.defaults(), objective or Objective()
        for name, given, kind in (("settings", settings, LearnedMixup), ("objective", objective, Objective)):
            if not isinstance(given, kind):
                raise ValueError(f"{name} must be samix.{kind.__name__}(...), got {given!r}.")
        tokens = count_prefix_tokens(network) if prefix_tokens is None else prefix_tokens
        encoder = Encoder(
            network, layer, channels_last=channels_last, prefix_tokens=tokens, norm=norm, head=head
        )
        method = Supervised.around(encoder, classes, objective, size)
        channels, _ = encoder.probe(size)
        warn_of_one_place(encoder, size)
        side = size if isinstance(size, int) else min(size)
        model = settings.build(method, Context(channels, side, Mixing))
        return model.to(encoder.black(size).device)

    def forward(  # type: ignore[override]
        self, x: Images, y: Tensor | None = None, progress: float = 0.0
    ) -> Losses | Logits:
        """Both objectives of Eq. (5) for one batch; behind `objective.mix_until` the classifier's alone.

        In eval mode, without labels, the classifier's logits. Labels are class indices, or rows.
        """
        if y is None:
            return self.predict(x)
        if not self.method.objective.mixes_at(progress):
            return self.method(x, y, progress)
        check_batch(x, y, self.method.classes)
        check_finite(x, len(x))
        y, s = y if y.ndim == 1 else y.float(), self.settings
        z, clean = self.read(x, y)  # [B, C, h, w]

        # The encoder learns from fixed masks, Eq. (12).
        pairing = draw_pairing(len(x), s.alpha, per_sample=s.per_sample, device=x.device)
        mixed = self.mix(x, z, pairing, progress)
        encoder = self.method.mixed_loss(self.method.logits(mixed.x), mixed, x, y, clean)

        # The Mixer learns through the frozen momentum copy, Eq. (13).
        losses = Losses(encoder, lam=pairing.lam)

        def judge(x_mix: Images, pairing: Pairing) -> Judgement:
            return self.judge(x_mix, pairing, x[: len(x_mix)], y[: len(x_mix)])

        return self.mixer_step(losses, x, z, progress, judge)

    def read(self, x: Images, y: AnyLabels) -> tuple[Maps, Scalar | None]:
        """The maps of the clean images and, where the clean branch's pass gives them, its loss."""
        if self.settings.speed.online_maps:
            clean, z = self.method.clean_loss_and_maps(x, y)
            return z, clean
        with torch.no_grad():
            return self.maps(x), None

    def predict(self, x: Images) -> Logits:
        """The logits of the head that learns from mixed images."""
        if self.training:
            raise ValueError("training needs labels: model(x, y, progress). In eval mode, model(x) predicts.")
        return self.method.logits(x)

    def judge(self, x_mix: Images, pairing: Pairing, x: Images, y: AnyLabels) -> Judgement:
        """What the momentum copy makes of mixtures; x, y are their first images with their labels."""
        return Judgement(self.judge_logits(self.momentum.logits(x_mix), pairing, y))

    def judge_logits(self, logits: Logits, pairing: Pairing, y: AnyLabels) -> EtaBalanced:
        """Eq. (8) on the logits of mixtures."""
        return eta_balanced(logits, y, pairing, self.settings.eta, self.settings.local)

    @property
    def frozen_copy(self) -> Supervised:
        """The momentum copy of the classifier."""
        return self.momentum

    @property
    def read_encoder(self) -> Encoder:
        """The momentum copy's, or the classifier's own where its clean branch gives the maps."""
        return (self.method if self.settings.speed.online_maps else self.momentum).encoder

    @property
    def followed(self) -> Supervised:
        """The classifier."""
        return self.method

    def heads(self, x: Images) -> dict[str, Logits]:
        """The online heads and, as 'mix_k' and 'one_k', those of the momentum copy."""
        copies = {name.replace("_q", "_k"): v for name, v in self.momentum.heads(x).items()}
        return self.method.heads(x) | copies
