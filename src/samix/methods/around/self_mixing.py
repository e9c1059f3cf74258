"""A hand-made policy inside a self-supervised method: clean plus mixed contrast across views, Eq. (4)."""

import torch
from torch import Tensor

from samix.contract import Around, Losses
from samix.core.distributed import broadcast, world
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Index, Maps, Saliency, Stats
from samix.methods.hints import Supplier, saliency_of
from samix.methods.ssl.base import Observed, SelfSupervised, Terms, Views
from samix.mixups.base import Hints, Policy
from samix.mixups.switch import Choice, Switching
from samix.nn.frozen import run_frozen

LABELLED = {
    "teacher": "a classifier as teacher",
    "labels": "labels",
    "activation": "class activation maps of labels",
}
"""Hints that only labels give."""


class SelfMixing(Around):
    """`policy` decides how views are mixed, `method` what is learned from them, `terms` in which shares."""

    method: SelfSupervised

    def __init__(
        self,
        method: SelfSupervised,
        policy: Policy,
        terms: Terms | None = None,
        stats: Stats | None = None,
    ) -> None:
        super().__init__(method)
        self.policy, self.stats = policy, stats
        self.terms = terms or method.terms

    @property
    def masks_pairs(self) -> bool:
        """As the policy does."""
        return self.policy.masks_pairs

    def draw(self, batch: int, device: torch.device) -> Pairing:
        """Who is mixed with whom and how much, the same in both views."""
        return self.terms.paired(draw_alike(self.policy, batch, device))

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """The method's loss on clean views and on one draw of the policy."""
        method, terms = self.method, self.terms
        method.begin(progress)
        views = method.take(x, index)
        seen = terms.observe(method, views)
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
        # Saliency may gather over processes, whose pairs may each have a policy: all compute it or none.
        needs = self.policy.needed(pairing) if world() == 1 else self.policy.needs
        for name in LABELLED.keys() & set(needs):
            raise ValueError(
                f"{type(self.policy).__name__} needs {LABELLED[name]}, which self-supervised training does "
                "not have. Choose another --mixup: inter-intra and puzzlemix-pl learn pseudo labels from "
                "online clusters, and in code learned.ClusterMixing does so for any policy."
            )
        supplied = self.supplier([name for name in needs if name != "saliency"], view, index)
        if "saliency" not in needs:
            return supplied
        return supplied._replace(saliency=self.saliency(view, target, seen))

    @property
    def supplier(self) -> Supplier:
        """Hints that take no labels, from the network that is being trained."""

        def maps(x: Images) -> Maps:
            return run_frozen(self.method.encoder, lambda encoder: encoder.maps(x))

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
        if {"saliency", *LABELLED} & set(needs):
            return None
        return self.policy.picture(x, pairing, self.supplier(needs, x, y))


def draw_alike(policy: Policy, batch: int, device: torch.device) -> Pairing:
    """Draws a pairing; the policy of a batch is, of several processes, the first one's choice.

    Policies whose mixtures have many parents ask for more contrasts, each of which may gather: processes that
    took different ones would wait for each other. lam and partners stay each process's own.
    """
    if world() == 1 or not isinstance(policy, Switching) or policy.per_sample:
        return policy.draw(batch, device=device)
    drawn = policy.draw(batch, device=device)
    assert drawn.member is not None
    shared = drawn.member.clone().to(device)
    broadcast(shared)
    if int(shared) == int(drawn.member):
        return drawn
    own = policy.members[int(shared)].draw(batch)
    return Choice.of(policy.skip(own.lam).to(device), own.index.to(device), shared.cpu())
