"""Features of a frozen encoder: evaluation mode, no gradient, and the encoder is left as it was found."""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from samix.core.shapes import Images, Labels, Stats
from samix.data import Batch, ImageSet, TestPlan, View, make_loader, normalize
from samix.nn.frozen import freeze


def extract(
    encoder: nn.Module, batches: Iterable[tuple[Images, Labels]]
) -> tuple[Float[Tensor, "N D"], Int[Tensor, "N"]]:
    """The features and labels of all batches in their order, in float32."""
    with freeze(encoder), torch.no_grad():
        parts = [(encoder(images).float(), labels) for images, labels in batches]
    if not parts:
        raise ValueError("there are no batches to take features of.")
    features, labels = zip(*parts, strict=True)
    return torch.cat(features), torch.cat(labels)


def features_of(
    encoder: nn.Module,
    images: ImageSet,
    view: View,
    stats: Stats,
    *,
    batch: int = 250,
    device: torch.device | str = "cpu",
    workers: int = 0,
) -> tuple[Float[Tensor, "N D"], Int[Tensor, "N"]]:
    """The features of every picture once, in order; `device` is where the encoder lives."""
    loader = make_loader(images, view, TestPlan(len(images.labels), batch), workers)
    return extract(encoder, on_device(loader, stats, device))


def on_device(
    batches: Iterable[Batch], stats: Stats, device: torch.device | str
) -> Iterator[tuple[Images, Labels]]:
    """Batches of pictures as normalised images on the device."""
    for pictures, labels in batches:
        yield normalize(pictures.to(device), *stats), labels.to(device)
