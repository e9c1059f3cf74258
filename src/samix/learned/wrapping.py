"""What is looked at before a Mixer joins a network of one's own."""

import warnings

from torch import nn

from samix.core.shapes import Size
from samix.nn.encoder import Encoder
from samix.nn.frozen import run_frozen


def check_network(network: nn.Module) -> None:
    """Refuses what is no network, and one that is spread over processes already."""
    if not isinstance(network, nn.Module):
        raise ValueError(f"the network must be an nn.Module; got {type(network).__name__}.")
    if isinstance(network, nn.parallel.DistributedDataParallel):
        raise ValueError(
            "the Mixer would lie outside DistributedDataParallel, and every process would train another. "
            "Wrap the bare network, then the whole: DistributedDataParallel(SAMix.wrap(network, ...))."
        )


def warn_of_one_place(encoder: Encoder, size: int | Size) -> None:
    """Warns, at the line that called `wrap`, if the maps of pictures of this size are single points."""
    seen = run_frozen(encoder, lambda frozen: frozen.maps(frozen.black(size)))
    if seen.shape[2:] == (1, 1):
        warnings.warn(
            f"layer {encoder.layer!r} gives a map of 1 x 1 for pictures of {size} pixels: there are no "
            "places to choose from, and all masks are even. Name an earlier layer.",
            stacklevel=3,
        )
