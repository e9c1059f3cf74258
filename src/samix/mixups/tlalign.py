"""TL-Align (TLA, arXiv 2210.06455): labels that travel through a transformer as its tokens do.

A box of whole tokens of the partner covers x_i, as CutMix would on the grid of tokens. The share s of the
first label is 1 at tokens of x_i, 0 at those of x_j, and the uncovered area at the class token. Every block
mixes shares by the attention that mixes its tokens (mean over heads, before dropout), and keeps half of
what was:

    s <- (A s + s) / 2

Label weight: the class token's share behind the last block. A comes from the same forward pass that gives
the loss and carries no gradient. Checked against Euphoria16/TL-Align, which carries whole rows of labels
along; for a pair, one number says as much. All tokens before the patches start as the class token does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.core.checks import check_not_negative
from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, PerSample, RandomSource, Size
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.cutmix import cutmix_mask
from samix.nn.attention import TokenWeights, watching_tokens
from samix.nn.conventions import patch_side

Shares = Float[Tensor, "B n"]
TokenMask = Float[Tensor, "N 1 h w"]
"""1 at tokens that show the first image."""


def token_grid(size: Size, patch: int) -> tuple[int, int]:
    """Rows and columns of the tokens, or an error for a picture that patches do not fill."""
    if size[0] % patch or size[1] % patch:
        raise ValueError(
            f"TL-Align cuts along tokens of {patch} pixels, which do not fill {size[0]} x {size[1]} pixels; "
            "set mixup.patch to the side of the network's patches."
        )
    return size[0] // patch, size[1] // patch


def enlarge(tokens: TokenMask, patch: int) -> Mask:
    """Every token as patch x patch pixels."""
    return tokens.repeat_interleave(patch, dim=2).repeat_interleave(patch, dim=3)


def align(shares: Shares, layers: Sequence[TokenWeights]) -> PerSample:
    """The class token's share behind all layers: s <- (A s + s) / 2 in each of them."""
    for weights in layers:
        shares = (torch.einsum("bqk,bk->bq", weights, shares) + shares) / 2
    return shares[:, 0].clamp(0, 1)


def first_shares(tokens: TokenMask, batch: int, count: int) -> Shares:
    """1 and 0 at the tokens of the first image and of its partner, their mean at all tokens before them."""
    shares = tokens.float().flatten(1).expand(batch, -1)
    before = shares.mean(dim=1, keepdim=True).expand(-1, count - shares.shape[1])
    return torch.cat([before, shares], dim=1)


@dataclass(frozen=True, kw_only=True)
class TLAlign(Policy):
    """CutMix along tokens for transformers with a class token; labels follow attention through all blocks."""

    patch: int = 0
    """Side in pixels of the network's patches; 0: as the network says."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "mixup", "patch")

    def draw_tokens(self, size: Size, patch: int, lam: Lam, generator: RandomSource) -> TokenMask:
        """The mask of CutMix on the grid of tokens."""
        return cutmix_mask(token_grid(size, patch), lam, generator)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The mask of pixels for a network whose patches nobody knows: tokens of `patch` or one pixel."""
        patch = max(self.patch, 1)
        return enlarge(self.draw_tokens(x.shape[-2:], patch, pairing.lam, generator), patch).to(x)

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Always raises an error: without the network there is no attention."""
        raise ValueError(
            "TLAlign weighs labels by the network's attention to the mixed images, so it cannot mix without "
            "the network. Call policy.run(network, x, pairing) or samix.Mix(...).forward(model, x, y)."
        )

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """The images, with labels weighed by area."""
        return super().mix(x, pairing, hints, generator)

    def mix_inside(
        self, network: nn.Module, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource
    ) -> tuple[Tensor, Mixed]:
        """Sends the labels behind the tokens, through the forward pass that gives the outputs."""
        with watching_tokens(network) as seen:
            patch = self.patch or patch_side(network)
            tokens = self.draw_tokens(x.shape[-2:], patch, pairing.lam, generator).to(x.device)
            mask = enlarge(tokens, patch).to(x)
            x_mix = blend_pairs(x, pairing.index, mask)
            outputs = network(x_mix)
        shares = first_shares(tokens, len(x), seen[0].shape[-1])
        area, lam = mean_of(mask), align(shares, seen)
        # A picture without numbers has no attention; a picture that is not covered is all its own.
        lam = torch.where(lam.isfinite() & (area < 1), lam, area)
        return outputs, Mixed(x_mix, mask, Pairing(lam, pairing.index))
