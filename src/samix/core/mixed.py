"""A mixed batch: images, masks, and labels with the weights that their parents deserve."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from samix.core.boxes import Detections, Patch, mix_boxes
from samix.core.devices import at_hand, within
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Index, Lam, Mask, PerSample, Scalar, SoftLabels

Criterion = Callable[[Tensor, Tensor], Tensor]
Sources = Callable[[Tensor], tuple[Tensor, Tensor]]


def blend(x: Images, partner: Images, mask: Mask) -> Images:
    """x_mix = mask * x + (1 - mask) * partner: the paper's h(.), with s_j = 1 - s_i.

    >>> white, black = torch.ones(1, 3, 1, 3), torch.zeros(1, 3, 1, 3)
    >>> blend(white, black, torch.tensor([[[[1.0, 0.25, 0.0]]]]))[0, 0].tolist()
    [[1.0, 0.25, 0.0]]
    """
    return torch.lerp(partner, x, mask)  # one pass over the images, exact at 0 and 1


def partners(x: Images, index: Index) -> Images:
    """The partner of each image: x[index], faster, and channels-last where x is."""
    if x.is_contiguous() or not x.is_contiguous(memory_format=torch.channels_last):
        return x.index_select(0, index)
    return x.permute(0, 2, 3, 1).index_select(0, index).permute(0, 3, 1, 2)


def blend_pairs(x: Images, index: Index, mask: Mask) -> Images:
    """Each image blended with its partner, written into the copy that holds the partners."""
    return partners(x, index).lerp_(x, mask)


def copy_partners(x: Images, index: Index, target: Images) -> None:
    """Writes the partner of each image into the target, which may be a part of a larger batch."""
    if x.requires_grad:
        target.copy_(x.index_select(0, index))
    else:
        torch.index_select(x, 0, index, out=target)  # no copy between


def in_format_of(x: Tensor, values: Tensor) -> Tensor:
    """The values [B, K, H, W] in the memory format of x, so that channels-last images stay so."""
    if x.is_contiguous(memory_format=torch.channels_last):
        return values.contiguous(memory_format=torch.channels_last)
    return values


class Parents(NamedTuple):
    """Which images of the batch each mixed image was made of, for policies that mix more than pairs."""

    index: Int[Tensor, "B P"]  # type: ignore[assignment]  # shadows tuple.index
    """Positions in the batch."""
    share: Float[Tensor, "B P"]
    """The weight of each parent's label."""


class Mixed(NamedTuple):
    """A mixed batch. `pairing.lam` is the weight that the first image's label deserves."""

    x: Images
    mask: Mask
    pairing: Pairing
    parents: Parents | None = None
    """Set where labels are not lam y_i + (1 - lam) y_j: more than two parents, or weights that do not
    sum to 1."""
    sources: Sources | None = None
    """Set where images were moved before they were blended: per-pixel values of the batch -> those of the
    first images and of their partners as the mask sees them."""
    patch: Patch | None = None
    """Set where the whole partner was shrunk into a part of the image (ResizeMix)."""

    def family(self) -> Parents:
        """The parents and label weights of every image; for a pair, (i, j) and (lam, 1 - lam)."""
        if self.parents is not None:
            return self.parents
        lam = self.pairing.lam.expand(len(self.pairing.index))
        return pair_parents(self.pairing.index, lam, 1 - lam)

    def labels(self, y: Tensor) -> tuple[Tensor, Tensor, Lam]:
        """(y_a, y_b, lam) for any loss: `lam * loss(y_a) + (1 - lam) * loss(y_b)`."""
        if self.parents is not None:
            raise ValueError(
                "these images have more than two parents, or label weights that do not sum to 1, so there is "
                "no (y_a, y_b, lam); use soft_labels(y, classes) or loss(criterion, outputs, y)."
            )
        index = self.pairing.index
        return y[: len(index)], y[index], self.pairing.lam

    def values(self, y: Tensor) -> Tensor:
        """lam * y_i + (1 - lam) * y_j for any float target [B, ...]: rows of classes, numbers to regress."""
        if self.parents is None:
            lam, index = self.pairing
            return torch.lerp(y.index_select(0, index), y[: len(index)], trailing_ones(lam.to(y), y.ndim - 1))
        index, share = self.parents
        return (trailing_ones(share.to(y), y.ndim - 1) * y[index]).sum(dim=1)

    def soft_labels(self, y: Tensor, classes: int, smoothing: float = 0.0) -> SoftLabels:
        """lam * y_i + (1 - lam) * y_j as rows [B, classes], smoothed towards uniform if asked.

        >>> pairing = Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))
        >>> mixed = Mixed(torch.zeros(2, 3, 8, 8), torch.full((2, 1, 8, 8), 0.75), pairing)
        >>> mixed.soft_labels(torch.tensor([0, 2]), classes=3).tolist()
        [[0.75, 0.0, 0.25], [0.25, 0.0, 0.75]]
        """
        if are_indices(y) and self.parents is None:
            return smooth(pair_rows(y, self.pairing, classes), smoothing)
        return smooth(self.values(one_hot(y, classes)), smoothing)

    def loss(self, criterion: Criterion, outputs: Tensor, y: Tensor) -> Scalar:
        """lam-weighted loss for a criterion that returns one value per sample (reduction='none')."""
        index, share = self.family()
        parts = [criterion(outputs, y[parent]) for parent in index.unbind(dim=1)]
        if parts[0].shape[:1] != outputs.shape[:1]:
            raise ValueError(
                "the criterion must return one loss per sample, because lam may differ between samples; "
                f"got shape {list(parts[0].shape)} for a batch of {len(outputs)}. Use reduction='none'."
            )
        losses = torch.stack(parts, dim=1)  # [B, P, ...]
        return (trailing_ones(share.to(losses), losses.ndim - 2) * losses).sum(dim=1).mean()

    def dense(self, target: Tensor) -> Tensor:
        """A per-pixel target [B, H, W] or [B, K, H, W], mixed as the images were.

        Floats are blended. Integers (class maps) are taken from whichever image shows more. Targets of video
        have one axis more, as the video has.
        """
        if self.parents is not None and self.parents.index.shape[1] > 2:
            raise ValueError("dense targets of images with more than two parents have no one mask.")
        planes = target if target.ndim == self.mask.ndim else target[:, None]
        if planes.ndim != self.mask.ndim or planes.shape[-2:] != self.mask.shape[-2:]:
            raise ValueError(
                f"a dense target must have shape [B, H, W] or [B, K, H, W] with the images' height and width "
                f"{list(self.mask.shape[-2:])}; got {list(target.shape)}."
            )
        index = self.pairing.index
        pair = (planes[: len(index)], planes[index]) if self.sources is None else self.sources(planes)
        if planes.is_floating_point():
            mixed = torch.lerp(pair[1], pair[0], self.mask.to(planes))
        else:
            mixed = torch.where(self.mask >= 0.5, *pair)
        return mixed if target.ndim == self.mask.ndim else mixed[:, 0]

    def first(self, count: int) -> "Mixed":
        """The first `count` mixed images alone; partners may still be any image of the batch."""

        x, mask, (lam, index), parents, sources, patch = self

        def shared_or_cut(values: Tensor) -> Tensor:
            return values if len(values) == 1 else values[:count]

        def cut_sources(planes: Tensor) -> tuple[Tensor, Tensor]:
            assert sources is not None
            own, other = sources(planes)
            return own[:count], other[:count]

        return Mixed(
            x[:count],
            shared_or_cut(mask),
            Pairing(shared_or_cut(lam), index[:count]),
            None if parents is None else Parents(parents.index[:count], parents.share[:count]),
            None if sources is None else cut_sources,
            None if patch is None else Patch(*(edge[:count] for edge in patch)),
        )

    def boxes(
        self, boxes: Sequence[Tensor], labels: Sequence[Tensor], least: float = 0.1
    ) -> list[Detections]:
        """The objects of every mixed image, of its first image and then of its partner.

        `boxes` has a tensor [N, 4] of (left, top, right, bottom) for each image of the batch, `labels` one of
        [N]. Boxes are cut down to what is seen of them, and dropped where less than `least` of them is.
        """
        blind = (self.parents is not None and self.parents.index.shape[1] > 2) or self.mask.ndim != 4
        if blind or (self.sources is not None and self.patch is None):
            raise ValueError("boxes follow pairs of images under one mask: take CutMix, ResizeMix, Mixup.")
        return mix_boxes(boxes, labels, self.pairing.index, self.mask, self.patch, least)


def trailing_ones(values: Tensor, count: int) -> Tensor:
    """The values with `count` more axes of length 1, to weigh tensors that have these axes."""
    return values.view(*values.shape, *[1] * count)


def pair_parents(index: Index, first: PerSample, second: PerSample) -> Parents:
    """Pairs as parents: image i with weight first[i], its partner index[i] with weight second[i]."""
    own = torch.arange(len(index), device=index.device)
    return Parents(torch.stack([own, index], dim=1), torch.stack([first, second], dim=1))


def pair_rows(y: Tensor, pairing: Pairing, classes: int) -> SoftLabels:
    """lam at the class of the first image, 1 - lam at its partner's, 1 where both are of one class.

    >>> pairing = Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 2, 0]))
    >>> pair_rows(torch.tensor([0, 1, 1]), pairing, classes=2).tolist()
    [[0.75, 0.25], [0.0, 1.0], [0.25, 0.75]]
    """
    (lam, index), column = pairing, y.long().view(-1, 1)
    share, count = lam.float().view(-1, 1), index.shape[0]
    rows = torch.zeros(count, classes, device=y.device)
    try:
        rows.scatter_(1, column[:count], share.expand(count, 1))
        return rows.scatter_add_(1, column.index_select(0, index), (1 - share).expand(count, 1))
    except RuntimeError:  # torch looks at every label anyway; this says which one is wrong
        check_range(y, classes)
        raise


def are_indices(y: Tensor) -> bool:
    """Whether labels are class indices, one per image."""
    return y.ndim == 1 and not y.is_floating_point()


def check_range(y: Tensor, classes: int) -> None:
    """Refuses class indices outside [0, classes) where they may be looked at."""
    if at_hand(y):
        check_labels(y, classes)


def one_hot(y: Tensor, classes: int) -> SoftLabels:
    """Class indices [B] become one-hot rows [B, classes]; rows pass through unchanged."""
    if are_indices(y):
        check_range(y, classes)
        return torch.zeros(len(y), classes, device=y.device).scatter_(1, y.long()[:, None], 1.0)
    if y.ndim == 2 and y.shape[1] == classes:
        return y.float()
    raise ValueError(
        f"labels must have shape [B] (class indices) or [B, {classes}] (soft labels); "
        f"got {list(y.shape)} of {y.dtype}." + (" Call y.squeeze(1)." if y.shape[1:] == (1,) else "")
    )


def smooth(rows: SoftLabels, smoothing: float) -> SoftLabels:
    """(1 - smoothing) y + smoothing / classes."""
    return (1 - smoothing) * rows + smoothing / rows.shape[1] if smoothing else rows


def check_batch(x: object, y: Tensor, classes: int) -> None:
    """Refuses what is no batch of images, and labels that are no class indices, out of range, or no rows.

    Only values on the CPU are looked at: elsewhere that would cost a synchronisation.
    """
    check_images(x)
    if not isinstance(y, Tensor):
        raise ValueError(f"labels must be a tensor; got {type(y).__name__}. Write torch.as_tensor(y).")
    if y.shape == (len(x), classes):  # type: ignore[arg-type]
        return  # one-hot or soft rows
    check_indices(y, len(x))  # type: ignore[arg-type]
    check_range(y, classes)


def check_finite(x: Tensor, count: int) -> None:
    """Refuses images with NaN or infinite values and names them; x may hold several views of `count` images.

    One of them would spoil the weights, and with them every later batch. Only looked at on the CPU.
    """
    if not at_hand(x) or bool(x.detach().sum().isfinite()):
        return
    finite = x.detach().isfinite().flatten(1).all(dim=1)
    if bad := sorted({place % count for place in (~finite).nonzero().flatten().tolist()}):
        raise ValueError(
            f"images must be finite numbers; NaN or infinite values at position "
            f"{', '.join(map(str, bad[:8]))}{' ...' if len(bad) > 8 else ''} of the batch "
            f"({len(bad)} of {count} images). Leave these out."
        )


TENSORS_OUT_OF = {
    "ndarray": " Write torch.from_numpy(x).",
    "list": " Write torch.stack(x).",
    "tuple": " Write torch.stack(x).",
    "Image": " Write torchvision.transforms.v2.functional.to_dtype(to_image(x), scale=True)[None].",
}
"""What makes tensors of what people have, by the name of its type; `Image` is one of Pillow."""


def check_images(x: object, axes: tuple[int, ...] = (4,)) -> None:
    """Refuses what cannot be a batch of images; `axes` are the allowed numbers of them."""
    if not isinstance(x, Tensor):
        hint = TENSORS_OUT_OF.get(type(x).__name__, "")
        raise ValueError(f"images must be a float tensor [B, C, H, W]; got {type(x).__name__}.{hint}")
    if x.is_nested or x.layout is not torch.strided:
        kind = "nested" if x.is_nested else f"sparse ({x.layout})"
        raise ValueError(f"images must be a float tensor [B, C, H, W]; got a {kind} one. Write x.to_dense().")
    if 0 in x.shape:
        raise ValueError(f"images must have at least one picture, channel and pixel; got {list(x.shape)}.")
    if x.ndim not in axes or not x.is_floating_point():
        hint = " Write x.float() / 255." if x.dtype == torch.uint8 else ""
        raise ValueError(
            f"images must be a float tensor [B, C, H, W]; got {list(x.shape)} of {x.dtype}.{hint}"
        )
    if x.ndim == 4 and x.shape[3] in (1, 3) and x.shape[1] > 4:
        raise ValueError(
            f"images must have their channels in front, [B, C, H, W]; got {list(x.shape)}, which look like "
            "[B, H, W, C]. Write x.permute(0, 3, 1, 2)."
        )


def check_indices(y: Tensor, count: int) -> None:
    """Refuses anything but one class index per image; rows and columns would broadcast into a wrong loss."""
    if y.shape != (count,) or y.is_floating_point() or y.is_complex():
        hint = " Call y.squeeze(1)." if y.shape == (count, 1) else ""
        raise ValueError(
            f"labels must be class indices, shape [{count}] for {count} images; "
            f"got {list(y.shape)} of {y.dtype}.{hint}"
        )


def check_labels(y: Tensor, classes: int) -> None:
    """Refuses class indices outside [0, classes), naming the first bad one."""
    if len(y) == 0 or within(y, 0, classes - 1):
        return
    where = int(((y < 0) | (y >= classes)).nonzero()[0])
    raise ValueError(
        f"labels must lie in [0, {classes - 1}] for {classes} classes; "
        f"label {int(y[where])} at position {where} does not. Check the number of classes."
    )
