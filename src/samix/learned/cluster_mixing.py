"""A policy that needs labels inside a self-supervised method: online clusters supply them.

Inter-Intra* is `ClusterMixing` with the policy InterIntra, PuzzleMix* with PuzzleMix, whose saliency is then
Grad-CAM (arXiv 1610.02391) of the pseudo label instead of the input gradient.

Grad-CAM and SuperMix's teacher see the momentum branch through the cluster head, because its embeddings are
what is clustered and what the head learns from; methods without one have their online branch looked at.
Either is in eval mode, so that batch norm's statistics stay as they are.
"""

import re
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.contract import Context, Losses
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Embeddings, Images, Index, Labels, Logits, Saliency, Scalar, Stats
from samix.learned.pseudo import Clusters, KeepsClusters, PseudoLabels
from samix.methods.around.self_mixing import SelfMixing
from samix.methods.hints import Supplier
from samix.methods.ssl.base import Branch, Observed, SelfSupervised, Terms
from samix.mixups.base import Hints, Policy
from samix.mixups.interintra import InterIntra
from samix.mixups.puzzlemix import PuzzleMix
from samix.nn.encoder import Encoder, changing_output
from samix.nn.frozen import freeze, run_frozen


@dataclass(frozen=True, kw_only=True)
class ClusteredPolicy:
    """A policy whose labels are clusters."""

    policy: Policy
    """How pairs are mixed."""
    clusters: Clusters = field(default_factory=Clusters)
    """Where the labels come from."""

    mixes: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    def build(self, method: SelfSupervised, context: Context) -> "ClusterMixing":
        """The policy around the method, with a memory of the training pictures' clusters."""
        dim = method.embedding_width(context.size)
        return ClusterMixing(
            method, self.policy, self.clusters, stats=context.stats, dim=dim, pictures=context.pictures
        )


@dataclass(frozen=True, kw_only=True)
class ClusteredInterIntra(ClusteredPolicy):
    """Inter-Intra*: CutMix between clusters, Mixup within one."""

    policy: InterIntra = field(default_factory=InterIntra)


@dataclass(frozen=True, kw_only=True)
class ClusteredPuzzleMix(ClusteredPolicy):
    """PuzzleMix*: PuzzleMix with Grad-CAM of pseudo labels."""

    policy: PuzzleMix = field(default_factory=PuzzleMix)


class ClusterClassifier(nn.Module):
    """Images -> logits of the clusters; gradients reach the branch and the images, not the head."""

    def __init__(self, branch: Branch, pseudo: PseudoLabels) -> None:
        super().__init__()
        self.branch, self.pseudo = branch, pseudo

    def forward(self, x: Images) -> Logits:
        return self.pseudo.logits(self.branch(x).float())


def last_stage(encoder: Encoder) -> str:
    """The last of the stages that are named like the encoder's `layer`: layer3 -> layer4.

    Of transformers the last but one: behind the last, a class token no longer looks at the patches. Of layers
    without a name, which may be anything, the encoder's own.
    """
    stem = re.sub(r"\d+$", "", encoder.layer)
    numbered = re.compile(re.escape(stem) + r"\d+")
    names = [name for name, _ in encoder.network.named_modules() if numbered.fullmatch(name)]
    if not stem or len(names) < 2:
        return encoder.layer
    return sorted(names, key=lambda name: int(name[len(stem) :]))[-2 if encoder.prefix_tokens else -1]


def grad_cam(classifier: ClusterClassifier, x: Images, y: Labels) -> Saliency:
    """relu(sum_c w_c A_c), A the last stage's maps, w the mean over places of d (-CE) / d A, bilinear to x.

    What speaks for the label is bright; 0 everywhere where nothing does.
    """
    encoder, held = classifier.branch.encoder, []

    def hold(output: Tensor) -> Tensor:
        held.append(output.detach().requires_grad_())
        return held[0]

    with freeze(classifier), torch.enable_grad(), changing_output(encoder.network, last_stage(encoder), hold):
        evidence = -F.cross_entropy(classifier(x), y, reduction="sum")
        gradient = torch.autograd.grad(evidence, held)[0]
    maps, slopes = encoder.as_map(held[0].detach(), x).float(), encoder.as_map(gradient, x).float()
    cam = (slopes.mean(dim=(2, 3), keepdim=True) * maps).sum(dim=1, keepdim=True).relu()  # [B, 1, h, w]
    return F.interpolate(cam, size=x.shape[-2:], mode="bilinear", align_corners=False)[:, 0]


class ClusterMixing(KeepsClusters, SelfMixing):
    """`SelfMixing` with a cluster memory of all pictures and a linear head that knows the clusters."""

    def __init__(
        self,
        method: SelfSupervised,
        policy: Policy,
        clusters: Clusters | None = None,
        terms: Terms | None = None,
        stats: Stats | None = None,
        *,
        dim: int,
        pictures: int,
    ) -> None:
        super().__init__(method, policy, terms, stats)
        self.pseudo = PseudoLabels(pictures, dim, clusters or Clusters())

    @property
    def clustered_branch(self) -> Branch:
        """The branch whose embeddings are clustered."""
        return self.method.branch if self.method.momentum is None else self.method.momentum

    @property
    def classifier(self) -> ClusterClassifier:
        """The cluster head behind that branch."""
        return ClusterClassifier(self.clustered_branch, self.pseudo)

    def finish(self, losses: Losses, seen: Observed, second: Images, index: Index) -> Losses:
        """The losses with the head's; then the clusters move towards the clean keys."""
        y, keys = self.pseudo.labels(index), seen.keys
        if keys is None:
            keys = run_frozen(self.clustered_branch, lambda branch: branch(second))
        losses = losses._replace(encoder=losses.encoder + self.head_loss(keys.float(), y))
        self.pseudo.update(index, keys.float())
        return losses

    def head_loss(self, keys: Embeddings, y: Labels) -> Scalar:
        """Cross-entropy of clean keys, rare clusters weigh more; it reaches the head alone."""
        logits = self.pseudo.head(keys.detach()).float()
        return F.cross_entropy(logits, y, weight=self.pseudo.memory.class_weights())

    def hints(self, view: Images, target: Tensor, pairing: Pairing, seen: Observed, index: Index) -> Hints:
        """What the policy asks for, of the pseudo labels as they were before this step."""
        return self.supply(view, self.pseudo.labels(index), pairing)

    def supply(self, x: Images, y: Labels, pairing: Pairing) -> Hints:
        """The hints of images with these labels; saliency is Grad-CAM."""
        needs = self.policy.needed(pairing)
        supplied = self.supplier([name for name in needs if name != "saliency"], x, y)
        if "saliency" not in needs:
            return supplied
        return supplied._replace(saliency=grad_cam(self.classifier, x, y))

    @property
    def supplier(self) -> Supplier:
        """As ever, with the cluster classifier as teacher."""
        return super().supplier._replace(teacher=self.classifier)

    @torch.no_grad()
    def picture(self, x: Images, y: Tensor, pairing: Pairing) -> Mixed | None:
        """The images as the policy mixes them; their labels are the clusters that the head finds in them."""
        found = run_frozen(self.classifier, lambda classifier: classifier(x)).argmax(dim=1)
        return self.policy.picture(x, pairing, self.supply(x, found, pairing))

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's parameters and the cluster head's."""
        return self.method.parameter_groups() | {"head": list(self.pseudo.head.parameters())}
