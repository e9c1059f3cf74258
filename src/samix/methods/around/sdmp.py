"""SDMP (arXiv 2206.07692): mixed images have mixed keys too, and mirrored mixtures share their content.

Image i is mixed with image j = N - 1 - i of the batch of all processes, in both views with the same lam. With
q of the clean first view, q_m of the mixed second view, and keys k_1, k_2, k_m of the clean views and of the
mixed first view:

    L = l(q, k_2; i) + 1/2 [lam_i l(q_m, k_1; i) + (1 - lam_i) l(q_m, k_1; j)]
                     + 1/2 [l(q_m, k_m; i) + c_i l(q_m, k_m; j)] / (1 + c_i)
    c_i = min(lam_i, 1 - lam_j) + min(1 - lam_i, lam_j), the content that mixtures i and j share

l is the method's contrast: over all keys of the batch (MoCo v3), or over one key and the queue (MoCo). SimCLR
has no momentum branch: its keys are online embeddings with gradients, and l is NT-Xent with both its sides.

Differs from OliverRensu/SDMP: images are mixed (its last version never pastes), positives are weighed as in
its version 0.1, lam_j is that of the image's true partner, and ResizeMix shrinks by nearest sampling.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from samix.contract import Around, Context, Losses, Model
from samix.core.checks import check_fields
from samix.core.distributed import gather, gather_constant, own_places, shared_permutation, world
from samix.core.mixed import Mixed, Parents, blend
from samix.core.pairing import Pairing, check_alpha, draw_lam
from samix.core.shapes import Embeddings, Images, Index, Mask, PerSample, RandomSource
from samix.core.words import suggest
from samix.losses.contrastive import (
    AllRows,
    in_batch_nce_per_sample,
    info_nce_per_sample,
    nt_xent_per_sample,
    over_parents,
)
from samix.methods.ssl.base import Observed, SelfSupervised, Views, views_of
from samix.methods.ssl.moco import MoCo
from samix.methods.ssl.mocov3 import MoCoV3
from samix.methods.ssl.simclr import SimCLR
from samix.mixups.base import mean_of
from samix.mixups.mixup import constant_mask
from samix.mixups.resizemix import draw_box, shrink_into

POLICIES = ("mixup", "cutmix", "resizemix")


@dataclass(frozen=True, kw_only=True)
class SDMPConfig:
    """How images are mixed."""

    policies: tuple[str, ...] = POLICIES
    """One of these, drawn for each batch: mixup, cutmix, resizemix."""
    alpha: float = 1.0
    """lam ~ Beta(alpha, alpha) for each image, moved into the range that margin leaves."""
    margin: float = 0.1
    """lam <- margin + (1 - 2 margin) lam: every image shows at least so much."""

    mixes: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.policies:
            raise ValueError(f"mixup.policies must name at least one of {', '.join(POLICIES)}.")
        for name in self.policies:
            if name not in POLICIES:
                raise ValueError(f"unknown mixup.policies {suggest(name, POLICIES)}")
        check_alpha(self.alpha, "mixup.alpha")
        rule = "must lie in [0, .5)"
        check_fields(self, "mixup", ["margin"], lambda value: 0 <= value < 0.5, rule)

    def build(self, method: SelfSupervised, context: Context) -> Model:
        """SDMP around the method."""
        return SDMP(method, self)

    def draw_lam(self, count: int, generator: RandomSource = None) -> PerSample:
        """Draws `count` values of lam in [margin, 1 - margin]."""
        return self.margin + (1 - 2 * self.margin) * draw_lam(count, self.alpha, generator)


def mix_with(
    x: Images, partner: Images, lam: PerSample, policy: str, generator: RandomSource = None
) -> tuple[Images, Mask]:
    """Each image mixed with its partner, and where it shows.

    Boxes lie wherever they fit inside the image, so that their area follows from lam alone.
    """
    size = x.shape[-2:]
    if policy == "mixup":
        mask = constant_mask(size, lam.to(x))
        return blend(x, partner, mask), mask
    rows, columns = draw_box(size, lam, generator)
    inside = rows.inside(size[0])[:, None, :, None] & columns.inside(size[1])[:, None, None]
    if policy == "resizemix":
        partner = shrink_into(partner, torch.arange(len(x), device=x.device), rows, columns)
    return blend(x, partner, (~inside).to(x)), (~inside).to(x)


def mirrored(count: int, device: torch.device) -> tuple[Index, Index]:
    """Where this process's `count` images stand among those of all processes, and where their partners do."""
    own = own_places(count, device)
    return own, count * world() - 1 - own


def shared_content(lam: PerSample, other: PerSample) -> PerSample:
    """c = min(lam_i, 1 - lam_j) + min(1 - lam_i, lam_j): what mixtures (i, j) and (j, i) have in common."""
    return torch.minimum(lam, 1 - other) + torch.minimum(1 - lam, other)


class SDMP(Around):
    """A contrast of clean with clean, mixed with clean, and mixed with mixed images."""

    method: SelfSupervised

    def __init__(self, method: SelfSupervised, config: SDMPConfig | None = None) -> None:
        super().__init__(method)
        if not isinstance(method, MoCo | MoCoV3 | SimCLR):
            raise ValueError(
                f"SDMP needs negatives beside its mixed keys, and {type(method).__name__} has none. Choose "
                "SimCLR or MoCo v1, v2 or v3 as --method."
            )
        self.config = config or SDMPConfig()

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """The three terms for two views, which change places with probability 1/2."""
        method, config, device = self.method, self.config, x.device
        method.begin(progress)
        views = views_of(x, index)
        first, second = (views[place] for place in shared_permutation(2, device).tolist())

        # Both views are mixed alike but for the places of their boxes.
        own, other = mirrored(len(index), device)
        lam = config.draw_lam(len(index)).to(device)
        policy = config.policies[int(shared_permutation(len(config.policies), device)[0])]
        first_mixed, _ = mix_with(first, gather_constant(first)[other], lam, policy)
        second_mixed, mask = mix_with(second, gather_constant(second)[other], lam, policy)
        lam = mean_of(mask)

        query, mixed, k_1, k_2, k_m = self.embed(first, second, first_mixed, second_mixed)
        negatives = None if method.queue is None else method.queue.read()
        against = partial(self.contrast, negatives=negatives)
        content = shared_content(lam, gather_constant(lam)[other])
        pair, share = torch.stack([own, other], dim=1), 1 / (1 + content)
        clean = against(query, k_2, own).mean()
        to_clean = over_parents(partial(against, mixed, k_1), Parents(pair, share_and_rest(lam)))
        to_mixed = over_parents(partial(against, mixed, k_m), Parents(pair, share_and_rest(share)))
        method.remember(Observed((), (k_2[own],)))
        return Losses(clean + (to_clean + to_mixed) / 2, lam=lam)

    def embed(
        self, first: Images, second: Images, first_mixed: Images, second_mixed: Images
    ) -> tuple[Embeddings, Embeddings, AllRows, AllRows, AllRows]:
        """q and q_m of this process's images, and k_1, k_2, k_m of those of all processes."""
        method = self.method
        if not isinstance(method, SimCLR):
            query, mixed = method.predict(first), method.predict(second_mixed)
            return query, mixed, self.keys(first), self.keys(second), self.keys(first_mixed)
        # Both views in one pass, clean ones and mixed ones apart, as SimCLR and every mixup here have them.
        query, z_2 = method.predict(torch.cat([first, second])).chunk(2)
        z_m, mixed = method.predict(torch.cat([first_mixed, second_mixed])).chunk(2)
        return query, mixed, gather(query), gather(z_2), gather(z_m)

    @torch.no_grad()
    def keys(self, x: Images) -> AllRows:
        """Unit keys of the images of all processes."""
        method = self.method
        assert method.momentum is not None
        keys = method.keys(x) if isinstance(method, MoCo) else method.momentum(x)
        return gather_constant(F.normalize(keys.float(), dim=1))

    def contrast(
        self, query: Embeddings, keys: AllRows, positive: Index, negatives: Tensor | None
    ) -> PerSample:
        """The method's own, for positives that may be another process's keys."""
        tau = self.method.tau
        if isinstance(self.method, SimCLR):
            place = own_places(len(query), query.device)
            return nt_xent_per_sample(gather(query), keys, place, positive, tau)
        if negatives is None:
            return 2 * tau * in_batch_nce_per_sample(query, keys, positive, tau)
        return info_nce_per_sample(query, keys[positive], negatives, tau)

    def picture(self, x: Images, y: Tensor, pairing: Pairing) -> Mixed | None:
        """The images as the first of the policies mixes them."""
        lam = pairing.lam.clamp(self.config.margin, 1 - self.config.margin).expand(len(x))
        mixed, mask = mix_with(x, x[pairing.index], lam, self.config.policies[0])
        return Mixed(mixed, mask, Pairing(mean_of(mask), pairing.index))


def share_and_rest(share: PerSample) -> Tensor:
    """(share, 1 - share) of every image, [B, 2]."""
    return torch.stack([share, 1 - share], dim=1)
