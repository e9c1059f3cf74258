"""Names for the shapes that travel through samix (checked at run time in the tests).

B batch, c H W channels and size of the images, C h w channels and size of a layer's map, K classes, D feature
width.
"""

from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int, Integer, UInt8
from torch import Tensor

Images: TypeAlias = Float[Tensor, "B c H W"]
RawImages: TypeAlias = UInt8[Tensor, "B c H W"]
Mask: TypeAlias = Float[Tensor, "#B 1 H W"]
Lam: TypeAlias = Float[Tensor, "#B"]
Index: TypeAlias = Int[Tensor, "B"]
Labels: TypeAlias = Integer[Tensor, "B"]
SoftLabels: TypeAlias = Float[Tensor, "B K"]
AnyLabels: TypeAlias = Integer[Tensor, "B"] | Float[Tensor, "B K"]
Logits: TypeAlias = Float[Tensor, "B K"]
Maps: TypeAlias = Float[Tensor, "B C h w"]
Features: TypeAlias = Float[Tensor, "B D"]
Embeddings: TypeAlias = Float[Tensor, "B D"]
Attention: TypeAlias = Float[Tensor, "B n n"]
Scalar: TypeAlias = Float[Tensor, ""]
PerSample: TypeAlias = Float[Tensor, "B"]
AttentionMap: TypeAlias = Float[Tensor, "B h w"]
Saliency: TypeAlias = Float[Tensor, "B H W"]
Size: TypeAlias = tuple[int, int] | torch.Size
"""Height and width: `x.shape[-2:]`."""
RandomSource: TypeAlias = torch.Generator | None
"""Where draws come from; None: torch's own generator."""


class Stats(NamedTuple):
    """How images were normalised: (pixels - mean) / std, per channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
