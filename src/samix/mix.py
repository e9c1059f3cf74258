"""The drop-in: any mixup, or several, in any training loop.

    mix = samix.Mix("cutmix", classes=100)
    x, y = mix(x, y)                       # y becomes soft [B, 100]; the rest of the loop stays as it is

Takes the place of `timm.data.Mixup` and of torchvision's `v2.MixUp` and `v2.CutMix`. Differs from them: any
policy, any batch size, nothing in place, partners are never the image itself, and a generator of one's own.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from samix.core.mixed import Mixed, check_images
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Maps, RandomSource, SoftLabels, Stats
from samix.core.words import suggest
from samix.learned import LEARNED
from samix.methods.hints import Supplier
from samix.mixups import MIXUPS, Hints, Policy
from samix.mixups.switch import Choice, Switch, Switching
from samix.nn.encoder import read_layer
from samix.nn.frozen import run_frozen

Mode = Literal["batch", "pair", "elem"]
Policies = str | Policy | Sequence[str | Policy] | Mapping[str, float]


class Mix:
    """Mixes batches by a policy, or by one of several that is drawn anew each time.

    Args:
        policy: a name of `MIXUPS`, a policy, a sequence of them, or names with their probabilities.
        classes: number of classes; needed to make rows out of class indices.
        alpha: lam ~ Beta(alpha, alpha); None leaves each policy its own.
        prob: probability of mixing at all.
        mode: "batch" draws one lam and one policy for the batch, "elem" for each image, and "pair" mixes the
            batch with its reverse and lets both images of a pair share lam and policy.
        correct_lam: weigh labels by what a mask really shows; False keeps the drawn lam.
        smoothing: label smoothing.
        off_epoch: from this epoch on (`set_epoch`) batches stay as they are.
        generator: a CPU generator for reproducible mixing; None uses torch's own.
        model: the network, for policies that need its saliency, attention or class activation maps.
        layer: name of the model's layer whose maps AttentiveMix reads.
        teacher: a frozen classifier, for SuperMix and SnapMix; None takes the model.
        mean, std: how the images were normalised, for policies that look at pixels.

    Labels weigh what one sees, here of a black and a white image:

    >>> x, y = torch.stack([torch.zeros(3, 32, 32), torch.ones(3, 32, 32)]), torch.tensor([0, 1])
    >>> x_mix, rows = Mix("cutmix", classes=2)(x, y)
    >>> x_mix.shape, rows.shape
    (torch.Size([2, 3, 32, 32]), torch.Size([2, 2]))
    >>> torch.allclose(x_mix.mean(dim=(1, 2, 3)), rows[:, 1])
    True
    """

    def __init__(
        self,
        policy: Policies = "mixup",
        classes: int | None = None,
        *,
        alpha: float | None = None,
        prob: float = 1.0,
        mode: Mode = "batch",
        correct_lam: bool = True,
        smoothing: float = 0.0,
        off_epoch: int | None = None,
        generator: RandomSource = None,
        model: nn.Module | None = None,
        layer: str | None = None,
        teacher: nn.Module | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        if mode not in get_args(Mode):
            raise ValueError(f"unknown mode {suggest(mode, get_args(Mode))}")
        if not 0 <= prob <= 1:
            raise ValueError(f"prob must lie in [0, 1], got {prob}.")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must lie in [0, 1), got {smoothing}.")
        if classes is not None and classes < 1:
            raise ValueError(f"classes must be at least 1, got {classes}.")
        if (mean is None) != (std is None):
            raise ValueError("mean and std belong together: give both, or neither for images in [0, 1].")
        self.policy = one_policy(policy, alpha, per_sample=mode != "batch")
        self.classes, self.prob, self.mode, self.correct_lam = classes, prob, mode, correct_lam
        self.smoothing, self.off_epoch, self.epoch, self.generator = smoothing, off_epoch, 0, generator
        stats = None if mean is None or std is None else Stats(triple(mean), triple(std))
        self.supplier, self.looked = Supplier(model, maps_of(model, layer), teacher, stats), False

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Images, SoftLabels]:
        """Mixed images and soft labels [B, classes]; indices, one-hot, soft and multi-hot labels will do."""
        mixed = self.mixed(x, y)
        return mixed.x, self.rows(mixed, y)

    def pairs(self, x: Tensor, y: Tensor) -> tuple[Images, Tensor, Tensor, Lam]:
        """Mixed images and (y_a, y_b, lam) for any loss; lam is [1] or [B]."""
        mixed = self.mixed(x, y)
        return mixed.x, *mixed.labels(y)

    def forward(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, SoftLabels]:
        """The model's outputs for a mixed batch, and its soft labels.

        Works for every policy, and is the only way for those that mix hidden layers (ManifoldMix, PatchUp,
        AlignMix) or weigh labels by attention to the mixed images (TransMix).
        """
        outputs, mixed = self.run(model, x, y)
        return outputs, self.rows(mixed, y)

    def run(self, model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Mixed]:
        """The model's outputs and the whole mixed batch."""
        check_batch(x, y)
        known, pairing = self.supplier, self.draw(x)
        supplier = known if known.network is not None else known._replace(network=model)
        hints = self.hints(supplier, pairing, x, y)
        outputs, mixed = self.policy.run(model, x, pairing, hints, self.generator)
        return outputs, self.relabel(mixed, pairing)

    def mixed(self, x: Tensor, y: Tensor) -> Mixed:
        """The whole mixed batch: images, masks, pairing; `mixed.dense(target)` mixes a per-pixel target."""
        check_batch(x, y)
        pairing = self.draw(x)
        hints = self.hints(self.supplier, pairing, x, y)
        return self.relabel(self.policy(x, pairing, hints, self.generator), pairing)

    def hints(self, supplier: Supplier, pairing: Pairing, x: Images, y: Tensor) -> Hints:
        """What the policy needs to know of this batch; the first one shows whether mean and std are right."""
        needs = self.policy.needed(pairing)
        if "pixels" in needs and not self.looked:
            self.looked = True
            warn_of_pixels(x, supplier.stats)
        return supplier(needs, x, y)

    def rows(self, mixed: Mixed, y: Tensor) -> SoftLabels:
        """Soft labels of a mixed batch."""
        classes = y.shape[1] if y.ndim == 2 and self.classes is None else self.classes
        if classes is None:
            raise ValueError("soft labels need the number of classes: Mix(..., classes=N), or use mix.pairs.")
        return mixed.soft_labels(y, classes, self.smoothing)

    def set_epoch(self, epoch: int) -> None:
        """Tells the current epoch, so that `off_epoch` can take effect."""
        self.epoch = epoch

    @property
    def is_on(self) -> bool:
        """False from `off_epoch` on."""
        return self.off_epoch is None or self.epoch < self.off_epoch

    def draw(self, x: Tensor) -> Pairing:
        """Who is mixed with whom and how much; lam is 1 for what stays as it is."""
        pairing = self.policy.draw(len(x), self.generator)
        lam, index = pairing
        if self.mode == "pair":
            index = torch.arange(len(x)).flip(0)
            lam = torch.where(index == torch.arange(len(x)), torch.ones_like(lam), self.paired(lam))
            if isinstance(pairing, Choice) and pairing.member is not None:
                pairing.member = self.paired(pairing.member)
        if not self.is_on:
            lam = torch.ones_like(lam)
        elif self.prob < 1:
            kept = self.paired(torch.rand(len(lam), generator=self.generator)) >= self.prob
            lam = torch.where(kept, torch.ones_like(lam), lam)
        return pairing._replace(lam=lam.to(x.device), index=index.to(x.device))

    def paired(self, values: Tensor) -> Tensor:
        """In pair mode, image i and image B - 1 - i share the value of the first of them."""
        if self.mode != "pair":
            return values
        position = torch.arange(len(values))
        return values[torch.minimum(position, position.flip(0))]

    def relabel(self, mixed: Mixed, drawn: Pairing) -> Mixed:
        """The batch with the drawn lam as label weight where that was asked for."""
        if self.correct_lam or mixed.parents is not None:
            return mixed
        return mixed._replace(pairing=Pairing(drawn.lam, mixed.pairing.index))


def one_policy(given: Policies, alpha: float | None, *, per_sample: bool) -> Policy:
    """The policy, or one that switches between several, out of whatever the user gave."""
    if isinstance(given, Mapping):
        if not given or min(given.values()) < 0 or sum(given.values()) <= 0:
            raise ValueError(f"probabilities must be 0 or more and not all 0; got {dict(given)}.")
        shares = [(find_policy(name), float(share)) for name, share in given.items()]
    else:
        shares = [
            (find_policy(each), 1.0) for each in ([given] if isinstance(given, str | Policy) else given)
        ]
        if not shares:
            raise ValueError("name at least one policy.")
    # A policy that switches stands for its members, so that alpha reaches these.
    flat = [(member, share * odds) for each, share in shares for member, odds in members_of(each)]
    changes = {} if alpha is None else {"alpha": alpha}
    policies = tuple(replace(policy, **changes) for policy, _ in flat)  # type: ignore[arg-type]
    if len(policies) == 1:
        return replace(policies[0], per_sample=per_sample)
    total = sum(share for _, share in flat)
    odds = tuple(share / total for _, share in flat)
    return Switch(policies=policies, probabilities=odds, per_sample=per_sample)


def members_of(policy: Policy) -> list[tuple[Policy, float]]:
    """The policies behind a policy, with their probabilities."""
    if isinstance(policy, Switching):
        return list(zip(policy.members, policy.odds, strict=True))
    return [(policy, 1.0)]


def find_policy(policy: str | Policy) -> Policy:
    """A policy by its name in `MIXUPS`, with its own defaults."""
    if isinstance(policy, Policy):
        return policy
    if policy in LEARNED:
        settings = LEARNED[policy].__name__
        raise ValueError(
            f"{policy!r} learns its masks together with your network: use samix.SAMix.wrap(network, layer, "
            f"classes, samix.{settings}())."
        )
    if policy == "samix-p":
        raise ValueError("'samix-p' is a trained Mixer: Mix(samix.load_mixer('runs/...'), classes).")
    if policy not in MIXUPS:
        raise ValueError(f"unknown mixup {suggest(policy, MIXUPS)}")
    return MIXUPS[policy]()


def check_batch(x: Tensor, y: Tensor) -> None:
    """Refuses what cannot be a batch of images with labels."""
    check_images(x)
    if len(x) != len(y):
        raise ValueError(f"{len(x)} images but {len(y)} labels.")


def warn_of_pixels(x: Images, stats: Stats | None) -> None:
    """Warns of images that were clearly not normalised by these numbers: the policy would see others."""
    if stats is None:
        return  # the supplier refuses images outside [0, 1]
    mean, std = (torch.tensor(values).to(x).view(1, -1, 1, 1) for values in stats)
    pixels = x.detach() * std + mean
    raw = min(stats.mean) > 0 and bool(x.min() >= 0) and bool(x.max() <= 1)
    if raw or bool(pixels.min() < -0.5) or bool(pixels.max() > 1.5):
        warnings.warn(
            f"the policy looks at pixels in [0, 1], but the images lie in [{float(x.min()):.2f}, "
            f"{float(x.max()):.2f}], which mean={list(stats.mean)} and std={list(stats.std)} do not turn "
            "into such: give Mix the numbers of your normalisation, or none for images in [0, 1].",
            stacklevel=4,
        )


def maps_of(model: nn.Module | None, layer: str | None) -> Callable[[Images], Maps] | None:
    """Images -> the maps of the model's layer, the model frozen; None without a layer."""
    if model is None or layer is None:
        return None

    def maps(x: Images) -> Maps:
        return run_frozen(model, lambda network: read_layer(network, layer, x))

    return maps


def triple(values: Sequence[float]) -> tuple[float, float, float]:
    """Three floats, one per channel."""
    if len(values) != 3:
        raise ValueError(f"mean and std have one value per channel, three in all; got {list(values)}.")
    first, second, third = (float(value) for value in values)
    return first, second, third
