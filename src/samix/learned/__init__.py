"""The paper in one room: SAMix (Scenario-Agnostic Mixup, arXiv 2111.15454), in the order of its Section 3.

Section 3.1, the objective (losses.py)
    Eq. (6)             pbce                            lam-smooth between two classes
    Eq. (7)             instance_bce                    the same between two instances
    Eq. (8)             eta_balanced, eta_balanced_instances
    appendix            mask_loss, MaskLoss             masks that weigh what lam says
Section 3.2, the Mixer (mixer.py)
    Eq. (9)             AdaptiveLam                     adaptive lambda encoding
    Eq. (10)            MixingAttention                 mixing attention
    Eq. (11)            nonlinear_content, Mixer        non-linear content, and the mask
    appendix            adjust_mask, Adjusting          lambda adjusting (shifting.py: ours, by a shift)
Section 3.3 and appendix A.2, how both are trained
    Eqs. (5), (12)      SAMix.forward                   samix.py: the encoder learns from fixed masks
    Eq. (13)            LearnedMixing.mixer_step        the Mixer learns through the frozen copy
    Eq. (14)            LearnedMixing.after_step        the momentum copy follows
    AutoMix             AutoMixed                       automix.py: what SAMix grew out of
    AdAutoMix           AdAutoMix                       adautomix.py: AutoMix's Mixer as an adversary
    SAMix-P             FrozenMixer                     frozen.py: trained before, then a policy like others
    SAMix-I             SAMixI                          samix_i.py: without labels, on instances
    SAMix-C             SAMixC                          samix_c.py: without labels, on clusters, which
                        PseudoLabels, ClusterMemory     pseudo.py and clusters.py keep
Section 4.3             ClusterMixing                   cluster_mixing.py: hand-made policies, these clusters
                        MixerWatch                      watch.py: what can go wrong with a Mixer

Eqs. (1) and (3) are in `samix.losses.classification`, Eqs. (2) and (4) in `samix.losses.contrastive`: every
method shares them. A new learned mixup is one file here, whose settings have `build`, and one line in
`LEARNED` or `LEARNED_WITHOUT_LABELS`.
"""

from samix.learned.adautomix import AdAutoMix, AdAutoMixed, Adversary
from samix.learned.automix import AutoMixed
from samix.learned.cluster_mixing import (
    ClusteredInterIntra,
    ClusteredPolicy,
    ClusteredPuzzleMix,
    ClusterMixing,
)
from samix.learned.frozen import FrozenMixer, Painter
from samix.learned.losses import EtaBalanced, MaskLoss, eta_balanced, eta_balanced_instances, mask_loss
from samix.learned.mixer import Adjusting, Mixer, MixerConfig, adjust_mask
from samix.learned.pseudo import Clusters
from samix.learned.samix import LearnedMixup, MixerTraining, MomentumCopy, SAMix
from samix.learned.samix_c import ClusterMixup, SAMixC
from samix.learned.samix_i import InstanceMixup, SAMixI
from samix.learned.shifting import shift_mask
from samix.learned.speed import Speed
from samix.learned.watch import MixerWatch

LEARNED: dict[str, type[LearnedMixup]] = {
    "automix": AutoMixed,
    "adautomix": AdAutoMixed,
    "samix": LearnedMixup,
}
"""Mixups that are learned beside a classifier, by the name that `--mixup` takes."""
LEARNED_WITHOUT_LABELS: dict[str, type[InstanceMixup]] = {"samix-i": InstanceMixup, "samix-c": ClusterMixup}
"""Mixups that are learned beside a self-supervised method."""
CLUSTERED: dict[str, type[ClusteredPolicy]] = {
    "inter-intra": ClusteredInterIntra,
    "puzzlemix-pl": ClusteredPuzzleMix,
}
"""Hand-made policies whose labels are the clusters of SAMix-C."""

__all__ = [
    "CLUSTERED",
    "LEARNED",
    "LEARNED_WITHOUT_LABELS",
    "AdAutoMix",
    "AdAutoMixed",
    "Adjusting",
    "Adversary",
    "AutoMixed",
    "ClusterMixing",
    "ClusterMixup",
    "ClusteredInterIntra",
    "ClusteredPuzzleMix",
    "Clusters",
    "EtaBalanced",
    "FrozenMixer",
    "InstanceMixup",
    "LearnedMixup",
    "MaskLoss",
    "Mixer",
    "MixerConfig",
    "MixerTraining",
    "MixerWatch",
    "MomentumCopy",
    "Painter",
    "SAMix",
    "SAMixC",
    "SAMixI",
    "Speed",
    "adjust_mask",
    "eta_balanced",
    "eta_balanced_instances",
    "mask_loss",
    "shift_mask",
]
