"""The drop-in: any mixup, or several, in any training loop.

    mix = samix.Mix("cutmix", classes=100)
    x, y = mix(x, y)                       # y becomes soft [B, 100]; the rest of the loop stays as it is

Takes the place of `timm.data.Mixup` and of torchvision's `v2.MixUp` and `v2.CutMix`. Differs from them: any
policy, any batch size, nothing in place, partners are never the image itself, and a generator of one's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from samix.errors import suggest
from samix.hooks import read_layer
from samix.methods.hints import Supplier, still
from samix.mixups import MIXUPS, Mixed, Mixup
from samix.mixups.switch import Switching
from samix.pairing import Pairing
from samix.typing import Images, Lam, Maps, SoftLabels, Stats

MODES = ("batch", "pair", "elem")
Policies = str | Mixup | Sequence[str | Mixup] | Mapping[str, float]


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
        model: the network, for policies that need its saliency or attention.
        layer: name of the model's layer whose maps AttentiveMix reads.
        teacher: a frozen classifier, for SuperMix; None takes the model.
        mean, std: how the images were normalised, for policies that look at pixels.
    """

    def __init__(
        self,
        policy: Policies = "mixup",
        classes: int | None = None,
        *,
        alpha: float | None = None,
        prob: float = 1.0,
        mode: str = "batch",
        correct_lam: bool = True,
        smoothing: float = 0.0,
        off_epoch: int | None = None,
        generator: torch.Generator | None = None,
        model: nn.Module | None = None,
        layer: str | None = None,
        teacher: nn.Module | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"unknown mode {suggest(mode, MODES)}")
        if not 0 <= prob <= 1:
            raise ValueError(f"prob must lie in [0, 1], got {prob}.")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must lie in [0, 1), got {smoothing}.")
        if classes is not None and classes < 1:
            raise ValueError(f"classes must be at least 1, got {classes}.")
        if (mean is None) != (std is None):
            raise ValueError("mean and std belong together: give both, or neither for images in [0, 1].")
        changes: dict[str, object] = {"per_sample": mode != "batch"}
        if alpha is not None:
            changes["alpha"] = alpha
        found, self.shares = choices(policy)
        self.policies = tuple(replace(each, **changes) for each in found)  # type: ignore[arg-type]
        self.classes, self.prob, self.mode, self.correct_lam = classes, prob, mode, correct_lam
        self.smoothing, self.off_epoch, self.epoch, self.generator = smoothing, off_epoch, 0, generator
        stats = None if mean is None or std is None else Stats(triple(mean), triple(std))
        self.supplier = Supplier(model, maps_of(model, layer), teacher, stats)

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
        """The model's outputs and the whole mixed batch, by one policy for all images."""
        check_batch(x, y)
        policy = self.policies[int(self.choose(1))]
        known = self.supplier
        supplier = known if known.network is not None else known._replace(network=model)
        pairing = self.draw(policy, x)
        outputs, mixed = policy.run(model, x, pairing, supplier(policy.needs, x, y), self.generator)
        return outputs, self.relabelled(mixed, pairing)

    def mixed(self, x: Tensor, y: Tensor) -> Mixed:
        """The whole mixed batch: images, masks, pairing; `mixed.dense(target)` mixes a per-pixel target."""
        check_batch(x, y)
        chosen = self.choose(len(x) if self.mode != "batch" else 1).to(x.device)
        parts = []
        for number in chosen.unique().tolist():
            policy = self.policies[number]
            pairing = self.draw(policy, x)
            mixed = policy(x, pairing, self.supplier(policy.needs, x, y), self.generator)
            parts.append((chosen == number, self.relabelled(mixed, pairing)))
        return parts[0][1] if len(parts) == 1 else assemble(parts)

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

    def choose(self, count: int) -> Tensor:
        """Which policy each image gets, [count]; both images of a pair the same in pair mode."""
        if len(self.policies) == 1:
            return torch.zeros(count, dtype=torch.long)
        shares = torch.tensor(self.shares)
        return self.paired(torch.multinomial(shares, count, replacement=True, generator=self.generator))

    def draw(self, policy: Mixup, x: Images) -> Pairing:
        """Who is mixed with whom and how much; lam is 1 for what stays as it is."""
        pairing = policy.draw(len(x), self.generator)
        lam, index = pairing
        if self.mode == "pair":
            index = torch.arange(len(x)).flip(0)
            lam = torch.where(index == torch.arange(len(x)), torch.ones_like(lam), self.paired(lam))
        if not self.is_on:
            lam = torch.ones_like(lam)
        elif self.prob < 1:
            kept = self.paired(torch.rand(len(lam), generator=self.generator)) >= self.prob
            lam = torch.where(kept, torch.ones_like(lam), lam)
        return Pairing(lam.to(x.device), index.to(x.device))

    def paired(self, values: Tensor) -> Tensor:
        """In pair mode, image i and image B - 1 - i share the value of the first of them."""
        if self.mode != "pair":
            return values
        position = torch.arange(len(values))
        return values[torch.minimum(position, position.flip(0))]

    def relabelled(self, mixed: Mixed, drawn: Pairing) -> Mixed:
        """The batch with the drawn lam as label weight where that was asked for."""
        return mixed if self.correct_lam or mixed.parents is not None else mixed._replace(pairing=drawn)


def choices(policy: Policies) -> tuple[tuple[Mixup, ...], tuple[float, ...]]:
    """Policies and their probabilities, out of whatever the user gave."""
    if isinstance(policy, Mapping):
        given = {named(name): float(share) for name, share in policy.items()}
        if not given or min(given.values()) < 0 or sum(given.values()) <= 0:
            raise ValueError(f"probabilities must be 0 or more and not all 0; got {dict(policy)}.")
    else:
        given = dict.fromkeys(map(named, [policy] if isinstance(policy, str | Mixup) else policy), 1.0)
        if not given:
            raise ValueError("name at least one policy.")
    # A policy that switches is its members: `Mix` draws between them as between any others.
    flat = [
        (member, share * odds)
        for each, share in given.items()
        for member, odds in (
            zip(each.members, each.odds, strict=True) if isinstance(each, Switching) else [(each, 1.0)]
        )
    ]
    return tuple(member for member, _ in flat), tuple(share for _, share in flat)


def named(policy: str | Mixup) -> Mixup:
    """A policy by its name in `MIXUPS`, with its own defaults."""
    if isinstance(policy, Mixup):
        return policy
    if policy not in MIXUPS:
        raise ValueError(f"unknown mixup {suggest(policy, MIXUPS)}")
    return MIXUPS[policy]()


def check_batch(x: Tensor, y: Tensor) -> None:
    """Refuses what cannot be a batch of images with labels."""
    if x.ndim != 4 or not x.is_floating_point():
        raise ValueError(f"images must be a float tensor [B, C, H, W]; got {list(x.shape)} of {x.dtype}.")
    if len(x) != len(y):
        raise ValueError(f"{len(x)} images but {len(y)} labels.")


def maps_of(model: nn.Module | None, layer: str | None) -> Callable[[Images], Maps] | None:
    """Images -> the maps of the model's layer, the model frozen; None without a layer."""
    if model is None or layer is None:
        return None

    def maps(x: Images) -> Maps:
        return still(model, lambda network: read_layer(network, layer, x))

    return maps


def triple(values: Sequence[float]) -> tuple[float, float, float]:
    """Three floats, one per channel."""
    if len(values) != 3:
        raise ValueError(f"mean and std have one value per channel, three in all; got {list(values)}.")
    first, second, third = (float(value) for value in values)
    return first, second, third


def assemble(parts: list[tuple[Tensor, Mixed]]) -> Mixed:
    """One batch out of several: each image from the batch whose policy it drew."""
    (_, whole), *others = parts
    size = len(whole.x)
    if any(mixed.parents is not None or mixed.sources is not None for _, mixed in parts):
        raise ValueError(
            "policies that move images or mix more than pairs cannot share a batch; use mode='batch'."
        )
    x, mask, (lam, index) = whole.x, whole.mask.expand(size, -1, -1, -1), whole.pairing
    lam = lam.expand(size)
    for mine, mixed in others:
        x = torch.where(mine[:, None, None, None], mixed.x, x)
        mask = torch.where(mine[:, None, None, None], mixed.mask, mask)
        lam = torch.where(mine, mixed.pairing.lam, lam)
        index = torch.where(mine, mixed.pairing.index, index)
    return Mixed(x, mask, Pairing(lam, index))
