"""AdAutoMix (arXiv 2312.11954): a Mixer that makes mixtures hard, but still like both of their pictures.

AutoMix's Mixer and classifier want the same, so masks soon become alike. Here the Mixer works against the
classifier on some batches, and as AutoMix's on the others:

    L_phi = -beta MCE(v_m) - (1 - beta) L_cos          on a share `adversary.prob` of the batches
    L_phi = MCE(v_m)                                   on the others
    L_cos = lam cos(v_m, v_i) + (1 - lam) cos(v_m, v_j)

MCE is mixup cross-entropy, SAMix Eq. (3); v are the logits that the momentum copy, the paper's EMA teacher,
gives to the mixture and to both clean pictures. The encoder learns as in AutoMix.

What the paper leaves open, and what is done here (the released code is in OpenMixup):

- The sign of L_cos. The cosine is there to keep the meaning of the pictures; the released code adds it to a
  loss that is minimised, which drives mixtures away from their pictures. Here they stay near.
- How often to attack. The code does it in every second step; here a coin decides, which needs no counter.
- The shares of the pictures. An adversary gains by showing others than the label promises, and the code has
  no mask loss. Its masks are a softmax over both pictures, that is sigmoid(P c_i - P' c_j); our balanced
  Mixer is the same with a shift that gives every mask the mean lam, so there is nothing to gain.
- How many pictures are mixed. The code draws two or three; here it is always two.
"""

from dataclasses import dataclass, field

import torch
from torch.nn import functional as F

from samix.contract import Context
from samix.core.checks import check_share
from samix.core.pairing import Pairing
from samix.core.renamed import OLD_NAMES, accept_old_names
from samix.core.shapes import AnyLabels, Images, Logits, PerSample
from samix.learned.automix import AutoMixed
from samix.learned.losses import MaskLoss
from samix.learned.mixer import Adjusting, MixerConfig, bernoulli
from samix.learned.samix import Judgement, SAMix
from samix.losses.classification import widen
from samix.methods.supervised import Supervised


def parent_similarity(mixed: Logits, clean: Logits, pairing: Pairing) -> PerSample:
    """L_cos = lam cos(v_m, v_i) + (1 - lam) cos(v_m, v_j), v_m of mixtures and v_i, v_j of clean pictures.

    >>> clean, pairing = torch.eye(2), Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))
    >>> parent_similarity(clean, clean, pairing).tolist()  # each mixture is like its first picture alone
    [0.75, 0.75]
    """
    mixed, clean = widen(mixed), widen(clean)
    first, second = (F.cosine_similarity(mixed, v, dim=1) for v in (clean, clean[pairing.index]))
    return pairing.lam * first + (1 - pairing.lam) * second


@dataclass(frozen=True, kw_only=True)
class Adversary:
    """When and how a Mixer works against the classifier."""

    prob: float = 0.5
    """Probability per batch that it does; otherwise it learns as AutoMix's (official: every second batch)."""
    beta: float = 0.3
    """Weight of hard mixtures; 1 - beta is the weight of mixtures that are like their pictures."""

    def __post_init__(self) -> None:
        check_share(self, "mixup.adversary", "prob", "beta")


@accept_old_names(OLD_NAMES)
@dataclass(frozen=True, kw_only=True)
class AdAutoMixed(AutoMixed):
    """AutoMix's parts in a balanced Mixer, which works against the classifier on some batches."""

    mixer: MixerConfig = field(
        default_factory=lambda: MixerConfig(
            encoding="concat", attention="cross", content="linear", balanced=True
        )
    )
    alpha: float = 1.0
    mask: MaskLoss = field(default_factory=lambda: MaskLoss(beta=0.0, variance=0.0))
    adjusting: Adjusting = field(default_factory=lambda: Adjusting(prob=0.0, lam_margin=0.03))
    adversary: Adversary = field(default_factory=Adversary)
    """When and how the Mixer works against the classifier."""

    def build(self, method: Supervised, context: Context) -> "AdAutoMix":
        """A fresh Mixer and the method's momentum copy, beside the method."""
        return AdAutoMix(method, self.mixer.build(context.channels), self)


class AdAutoMix(SAMix):
    """A classifier, its momentum copy and a Mixer that challenges both."""

    settings: AdAutoMixed
    defaults = AdAutoMixed

    def judge(self, x_mix: Images, pairing: Pairing, x: Images, y: AnyLabels) -> Judgement:
        """Mixup cross-entropy; on some batches its opposite and the similarity to both images."""
        logits, adversary = self.momentum.logits(x_mix), self.settings.adversary
        found = self.judge_logits(logits, pairing, y)
        if not bernoulli(adversary.prob):
            return Judgement(found)
        with torch.no_grad():
            clean = self.momentum.logits(x)
        similarity = parent_similarity(logits, clean, pairing).mean()
        hard = -adversary.beta * found.total - (1 - adversary.beta) * similarity
        return Judgement(found._replace(total=hard))
