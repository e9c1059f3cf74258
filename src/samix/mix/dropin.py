"""The drop-in: any mixup, or several, in any training loop.

    mix = samix.Mix("cutmix", classes=100)
    x, y = mix(x, y)                       # y becomes soft [B, 100]; the rest of the loop stays as it is

Takes the place of `timm.data.Mixup` and of torchvision's `v2.MixUp` and `v2.CutMix`. Differs from them: any
policy, any batch size, nothing in place, partners are never the image itself, and a generator of one's own.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import default_collate

from samix.core.devices import send
from samix.core.mixed import Mixed, check_images
from samix.core.pairing import Pairing
from samix.core.seeds import own_stream
from samix.core.shapes import Images, Lam, RandomSource
from samix.core.words import suggest
from samix.methods.hints import Supplier
from samix.mix.batches import check_pictures, is_torchvision, like_given, plain_tensor, unpack
from samix.mix.clips import mix_clips
from samix.mix.config import describe, read_config, to_config
from samix.mix.looks import check_looked_at, maps_of, warn_of_pixels
from samix.mix.policies import Policies, one_policy, timm_policy
from samix.mix.settings import (
    RULES,
    Mode,
    check_layer,
    check_mode,
    check_names,
    check_network,
    check_setting,
    stats_of,
)
from samix.mix.targets import Classes, Target, check_target, each_target, mix_target
from samix.mixups import Hints
from samix.mixups.switch import Choice


class Mix:
    """Mixes batches by a policy, or by one of several that is drawn anew each time.

    Args:
        policy: a name of `MIXUPS`, a policy, a sequence of them, or names with their probabilities.
        classes: number of classes, which makes rows out of class indices; several heads have one each.
        alpha: lam ~ Beta(alpha, alpha); None leaves each policy its own.
        prob: probability of mixing at all.
        mode: "batch" draws one lam and one policy for the batch, "elem" for each image, and "pair" mixes the
            batch with its reverse and lets both images of a pair share lam and policy. "half" mixes each
            image of the first half with one of the second and gives half a batch.
        correct_lam: weigh labels by what a mask really shows; False keeps the drawn lam.
        smoothing: label smoothing.
        off_epoch: from this epoch on (`set_epoch`) batches stay as they are.
        generator: a CPU generator for reproducible mixing; None uses torch's own.
        model: the network, for policies that need its saliency, attention or class activation maps.
        layer: name of the model's layer whose maps AttentiveMix reads.
        teacher: a frozen classifier, for SuperMix and SnapMix; None takes the model.
        mean, std: how the images were normalised, for policies that look at pixels.
        keys: names of images and labels in batches that are dictionaries; None recognises the usual ones.
        per_frame: give every frame of a video a mask of its own.

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
        classes: Classes = None,
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
        keys: Sequence[str] | None = None,
        per_frame: bool = False,
        **unknown: object,
    ) -> None:
        check_names(unknown)
        check_mode(mode)
        check_network("model", model)
        check_network("teacher", teacher)
        check_layer(layer)
        self.policy, self.mode = one_policy(policy, alpha, per_sample=mode != "batch"), mode
        self.classes, self.prob, self.correct_lam, self.smoothing = classes, prob, correct_lam, smoothing
        self.off_epoch, self.epoch, self.mixup_enabled = off_epoch, 0, True
        self.generator, self.keys, self.per_frame = generator, keys, per_frame
        self.supplier = Supplier(model, maps_of(model, layer), teacher, stats_of(mean, std))
        self.looked = False
        if not correct_lam and not self.policy.lam_weighs_labels:
            raise ValueError(f"correct_lam must be True: the drawn lam of {self!r} is no label weight.")

    @classmethod
    def timm(
        cls,
        mixup_alpha: float = 1.0,
        cutmix_alpha: float = 0.0,
        cutmix_minmax: Sequence[float] | None = None,
        prob: float = 1.0,
        switch_prob: float = 0.5,
        mode: Mode = "batch",
        correct_lam: bool = True,
        label_smoothing: float = 0.1,
        num_classes: int = 1000,
        **others: Any,
    ) -> "Mix":
        """A Mix by the arguments and defaults of `timm.data.Mixup`, and of `Mix` besides.

        >>> Mix.timm(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=10)
        Mix([0.5 * MixUp(alpha=0.8), 0.5 * CutMix()], classes=10, smoothing=0.1)
        """
        policy = timm_policy(mixup_alpha, cutmix_alpha, cutmix_minmax, switch_prob)
        return cls(
            policy,
            num_classes,
            prob=prob,
            mode=mode,
            correct_lam=correct_lam or cutmix_minmax is not None,
            smoothing=label_smoothing,
            **others,
        )

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | PathLike[str], **others: Any) -> "Mix":
        """A Mix out of what `to_config` gave, or a YAML file of it; `others` are model, generator, ..."""
        return cls(**(read_config(config) | others))

    def to_config(self) -> dict[str, Any]:
        """The policy and all settings that are not defaults, as plain values for YAML or JSON."""
        return to_config(self)

    def __repr__(self) -> str:
        return describe(self)

    def __setattr__(self, name: str, value: object) -> None:
        """Sets what exists and may change, to what is allowed; anything else is an error, not silence."""
        known = (*RULES, "policy", "mode", "supplier", "looked")
        if name not in known:
            raise AttributeError(f"Mix has no attribute {suggest(name, RULES)}")
        if name in ("policy", "mode") and hasattr(self, name):
            raise AttributeError(f"{name} is fixed when a Mix is made; make another one: Mix(...).")
        check_setting(name, value)
        super().__setattr__(name, value)

    def __call__(self, x: Any, y: Target = None) -> Any:
        """Mixed images and labels, packed as they were given: (x, y), [x, y], {"image": x, "label": y}.

        Class indices and rows become soft rows [B, classes], numbers to regress are weighed by lam, maps of
        the images' size are mixed by the mask; see `mix.targets`.
        """
        batch = unpack(x, y, self.keys)
        mixed = self.mixed(batch.x, batch.y)
        return batch.pack(mixed.x, self.rows(mixed, batch.y))

    def collate(self, samples: list[Any]) -> Any:
        """A mixed batch out of a loader's samples: `DataLoader(..., collate_fn=mix.collate)`."""
        return self(default_collate(samples))

    def pairs(self, x: Tensor, y: Target) -> tuple[Tensor, Target, Target, Lam]:
        """Mixed images and (y_a, y_b, lam) for any loss; lam is [1] or [B]."""
        mixed = self.mixed(x, y)
        y_a = each_target(y, lambda part: mixed.labels(part)[0])
        y_b = each_target(y, lambda part: mixed.labels(part)[1])
        return mixed.x, y_a, y_b, mixed.pairing.lam

    def forward(self, model: nn.Module, x: Tensor, y: Target) -> tuple[Any, Target]:
        """The model's outputs for a mixed batch, and its soft labels.

        Works for every policy, and is the only way for those that mix hidden layers (ManifoldMix, PatchUp,
        AlignMix) or weigh labels by attention to the mixed images (TransMix).
        """
        outputs, mixed = self.run(model, x, y)
        return outputs, self.rows(mixed, y)

    def run(self, model: nn.Module, x: Tensor, y: Target) -> tuple[Any, Mixed]:
        """The model's outputs and the whole mixed batch."""
        check_batch(x, y)
        if self.mode == "half" or x.ndim > 4:
            raise ValueError(
                f"forward runs the model on whole batches of images [B, C, H, W]; got {list(x.shape)} in "
                f"mode {self.mode!r}. Call mix(x, y), then the model."
            )
        known, generator = self.supplier, own_stream(self.generator)
        pairing = self.draw(x, generator)
        supplier = known if known.network is not None else known._replace(network=model)
        hints = self.hints(supplier, pairing, x, y)
        outputs, mixed = self.policy.run(model, x, pairing, hints, generator)
        return outputs, self.relabel(mixed, pairing)

    def mixed(self, x: Tensor, y: Target) -> Mixed:
        """The whole mixed batch: images, masks, pairing; `mixed.dense(target)` mixes a per-pixel target."""
        check_batch(x, y)
        generator = own_stream(self.generator)
        images, pairing = plain_tensor(x), self.draw(x, generator)
        if x.ndim == 4:
            hints = self.hints(self.supplier, pairing, images, y)
            mixed = self.policy(images, pairing, hints, generator)
        else:
            time = 1 if is_torchvision(x) else 2
            mixed = mix_clips(self.policy, images, pairing, generator, time if self.per_frame else None)
        mixed = self.relabel(mixed, pairing)
        if self.mode == "half":
            mixed = mixed.first(max(len(x) // 2, 1))
        return mixed if images is x else mixed._replace(x=like_given(mixed.x, x))

    def hints(self, supplier: Supplier, pairing: Pairing, x: Images, y: Target) -> Hints:
        """What the policy needs to know of this batch; the first one shows whether mean and std are right."""
        needs = self.policy.needed(pairing)
        if not needs:
            return Hints()
        check_looked_at(needs, supplier.stats, x, y)
        if "pixels" in needs and not self.looked:
            self.looked = True
            warn_of_pixels(x, supplier.stats)
        return supplier(needs, x, y)

    def rows(self, mixed: Mixed, y: Target) -> Target:
        """The labels of a mixed batch."""
        return mix_target(mixed, y, self.classes, self.smoothing)

    def set_epoch(self, epoch: int) -> None:
        """Tells the current epoch, so that `off_epoch` can take effect."""
        self.epoch = epoch

    @property
    def is_on(self) -> bool:
        """False from `off_epoch` on, and while `mixup_enabled` is False (timm's switch)."""
        return self.mixup_enabled and (self.off_epoch is None or self.epoch < self.off_epoch)

    def draw(self, x: Tensor, generator: RandomSource = None) -> Pairing:
        """Who is mixed with whom and how much; lam is 1 for what stays as it is."""
        pairing = self.policy.draw(len(x), generator)
        lam, index = pairing
        if self.mode in ("pair", "half"):
            index = torch.arange(len(x)).flip(0)
            lam = torch.where(index == torch.arange(len(x)), torch.ones_like(lam), self.paired(lam))
            if isinstance(pairing, Choice) and pairing.member is not None:
                pairing.member = self.paired(pairing.member)
        if not self.is_on:
            lam = torch.ones_like(lam)
        elif self.prob < 1:
            kept = self.paired(torch.rand(len(lam), generator=generator)) >= self.prob
            lam = torch.where(kept, torch.ones_like(lam), lam)
        return pairing._replace(lam=send(lam, x.device), index=send(index, x.device))

    def paired(self, values: Tensor) -> Tensor:
        """In pair mode, image i and image B - 1 - i share the value of the first of them."""
        if self.mode not in ("pair", "half"):
            return values
        position = torch.arange(len(values))
        return values[torch.minimum(position, position.flip(0))]

    def relabel(self, mixed: Mixed, drawn: Pairing) -> Mixed:
        """The batch with the drawn lam as label weight where that was asked for."""
        if self.correct_lam or mixed.parents is not None:
            return mixed
        return mixed._replace(pairing=Pairing(drawn.lam, mixed.pairing.index))


def check_batch(x: Tensor, y: Target) -> None:
    """Refuses what cannot be a batch of images, or of clips, with labels."""
    check_pictures(x)
    check_images(x, axes=(4, 5))
    check_target(y, len(x))
