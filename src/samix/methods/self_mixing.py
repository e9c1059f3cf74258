"""A hand-made policy inside a self-supervised method: clean plus mixed contrast across views, Eq. (4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from samix.distributed import world
from samix.methods.base import Losses
from samix.methods.hints import Supplier, saliency_of, still
from samix.methods.selfsup import Around, Observed, SelfSupervised, Views, views_of
from samix.mixups.base import Hints, Mixup
from samix.mixups.mixed import Mixed
from samix.pairing import Pairing
from samix.typing import Images, Index, Maps, Saliency, Scalar, Stats


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How clean and mixed images share the objective."""

    base: float = 1.0
    """Weight of the clean loss; 0 learns from mixed images alone (i-Mix, BSIM)."""
    mixed: float = 1.0
    """Weight of the mixed images' loss."""
    views: int = 2
    """Views that are mixed where a method is symmetric; 1 is cheaper and weighs as much."""
    same_view: bool = False
    """Targets from the mixed view instead of the other one; for the study in the paper's appendix."""
    reversed_pairs: bool = False
    """Pair image i with image B - 1 - i instead of a random one (Un-Mix)."""
    dominant: bool = False
    """lam <- max(lam, 1 - lam), so that the own image shows more (i-Mix)."""
    shared: bool = False
    """All positives of the batch in one softmax (i-Mix), where the method has separate ones."""

    def __post_init__(self) -> None:
        if self.base < 0 or self.mixed < 0 or self.base + self.mixed == 0:
            raise ValueError(
                f"terms.base and terms.mixed must not be negative, nor both 0; got {self.base}, {self.mixed}."
            )
        if self.views not in (1, 2):
            raise ValueError(f"terms.views must be 1 or 2, got {self.views}.")

    def paired(self, pairing: Pairing) -> Pairing:
        """The pairing with the partners and the lam that the terms ask for."""
        lam, index = pairing
        if self.reversed_pairs:
            pairing = pairing._replace(index=torch.arange(len(index), device=index.device).flip(0))
        if self.dominant:
            pairing = pairing._replace(lam=torch.maximum(lam, 1 - lam))
        return pairing

    def mixed_views(self, views: tuple[Images, Images], seen: Observed) -> tuple[Images, ...]:
        """The views that are mixed: never more than the method has directions."""
        return views[: min(self.views, len(seen.targets))]

    def loss(
        self,
        method: SelfSupervised,
        views: tuple[Images, Images],
        seen: Observed,
        outputs: Sequence[Tensor],
        mixed: Sequence[Mixed],
    ) -> Scalar:
        """base L(clean) + mixed L(mixed)."""
        targets = method.same_view_targets(*views, seen) if self.same_view else seen.targets
        loss = self.mixed * method.mixed_loss(outputs, mixed, targets, seen, shared=self.shared)
        return loss + self.base * method.loss(seen) if self.base else loss


LABELLED = {"teacher": "a classifier as teacher", "labels": "labels"}


class SelfMixing(Around):
    """`policy` decides how views are mixed, `method` what is learned from them, `terms` in which shares."""

    def __init__(
        self,
        method: SelfSupervised,
        policy: Mixup,
        terms: Terms | None = None,
        stats: Stats | None = None,
    ) -> None:
        super().__init__(method)
        self.policy, self.stats = policy, stats
        self.terms = terms or Terms()

    def draw(self, batch: int, device: torch.device) -> Pairing:
        """Who is mixed with whom and how much, the same in both views."""
        return self.terms.paired(self.policy.draw(batch, device=device))

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """The method's loss on clean views and on one draw of the policy."""
        method, terms = self.method, self.terms
        method.begin(progress)
        views = views_of(x, index)
        seen = method.observe(*views, predicting=terms.base > 0)
        pairing = self.draw(len(index), x.device)
        outputs, mixed = self.mix_views(terms.mixed_views(views, seen), pairing, seen, index)
        loss = terms.loss(method, views, seen, outputs, mixed)
        losses = self.finish(Losses(loss, lam=mixed[0].pairing.lam), seen, views[1], index)
        method.remember(seen)
        return losses

    def finish(self, losses: Losses, seen: Observed, second: Images, index: Index) -> Losses:
        """What else a step does once its losses are known."""
        return losses

    def mix_views(
        self, views: tuple[Images, ...], pairing: Pairing, seen: Observed, index: Index
    ) -> tuple[list[Tensor], list[Mixed]]:
        """Every view mixed alike: one seed for all of them, so that boxes and masks agree."""
        seed, outputs, batches = int(torch.randint(2**62, ())), [], []
        for view, target in zip(views, seen.targets, strict=False):
            hints = self.hints(view, target, pairing, seen, index)
            output, mixed = self.policy.run(
                self.method.online, view, pairing, hints, torch.Generator().manual_seed(seed)
            )
            outputs.append(output)
            batches.append(mixed)
        return outputs, batches

    def hints(self, view: Images, target: Tensor, pairing: Pairing, seen: Observed, index: Index) -> Hints:
        """What the policy asks for. Without labels, what is salient is what the contrast depends on."""
        # Saliency may gather over processes, each of which drew a policy of its own: all compute it or none.
        needs = self.policy.needed(pairing) if world() == 1 else self.policy.needs
        for name in {"teacher", "labels"} & set(needs):
            raise ValueError(
                f"{type(self.policy).__name__} needs {LABELLED[name]}, which self-supervised training does "
                "not have. ClusterMixing supplies it from online clusters; or choose another --mixup."
            )
        supplied = self.supplier([name for name in needs if name != "saliency"], view, index)
        if "saliency" not in needs:
            return supplied
        return supplied._replace(saliency=self.saliency(view, target, seen))

    @property
    def supplier(self) -> Supplier:
        """Hints that take no labels, from the network that is being trained."""

        def maps(x: Images) -> Maps:
            return still(self.method.encoder, lambda encoder: encoder.maps(x))  # type: ignore[operator]

        return Supplier(self.method.encoder.network, maps, stats=self.stats)

    def saliency(self, view: Images, target: Tensor, seen: Observed) -> Saliency:
        """sqrt(mean over channels of (d contrast / d x)^2), the method in eval mode."""
        method, own = self.method, torch.arange(len(view), device=view.device)
        return saliency_of(
            method, view, lambda x: method.contrast(method.predict(x), target.detach(), own, seen).sum()
        )

    @torch.no_grad()
    def picture(self, x: Images, y: Tensor, pairing: Pairing) -> Mixed | None:
        """The images as the policy mixes them, where that takes nothing but them and the encoder."""
        needs = self.policy.needed(pairing)
        if {"saliency", "teacher", "labels"} & set(needs):
            return None
        return self.policy.picture(x, pairing, self.supplier(needs, x, y))
