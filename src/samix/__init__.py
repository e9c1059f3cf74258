"""samix learns how to mix images: SAMix (arXiv 2111.15454) and the mixups it compares with."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from samix import _moved, _threads, _torchvision  # noqa: F401  (before torch, before torchvision)
from samix.contract import Model
from samix.core.extras import needs_train
from samix.core.mixed import Mixed, blend
from samix.core.pairing import Pairing, draw_pairing
from samix.evaluate.mixed_accuracy import mixed_accuracy
from samix.learned import (
    AdAutoMix,
    AdAutoMixed,
    Adjusting,
    Adversary,
    AutoMixed,
    ClusterMixup,
    FrozenMixer,
    InstanceMixup,
    LearnedMixup,
    MaskLoss,
    Mixer,
    MixerConfig,
    MixerWatch,
    MomentumCopy,
    SAMix,
    SAMixC,
    SAMixI,
    Speed,
)
from samix.learned.samix import LearnedMixing
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.mix import Mix
from samix.mixups import (
    MIXUPS,
    AlignMix,
    AttentiveMix,
    AugMix,
    CatchUpMix,
    CoMixup,
    CutMix,
    FMix,
    GridMix,
    GuidedMixup,
    ManifoldMix,
    MixPro,
    MixUp,
    MixupCutMix,
    MixupTokenMix,
    MixupTransMix,
    PatchUp,
    Policy,
    PuzzleMix,
    ResizeMix,
    SaliencyMix,
    SMMix,
    SmoothMix,
    SnapMix,
    SuperMix,
    Switch,
    TLAlign,
    TokenMix,
    TransMix,
)
from samix.nn.encoder import Encoder
from samix.nn.zoo import ENCODERS, build_encoder
from samix.version import __version__

if TYPE_CHECKING:
    from samix.runs.classifier import Classifier

_moved.install()


def load_classifier(run: str | PathLike[str]) -> "Classifier":
    """The classifier of a finished run, ready to use: `load_classifier("runs/mine").predict(files)`."""
    from samix.runs.classifier import load_classifier as load  # late: it reads files, as below

    return load(run)


def load_model(run: str | PathLike[str]) -> Model:
    """The model of a run's last checkpoint, in eval mode: `SAMix`, `Mixing`, ... as the run trained it."""
    with needs_train("load_model"):
        from samix.commands.trained import load_model as load  # late: it knows every recipe

    return load(Path(run))


LearnedMixing.reader = staticmethod(load_model)  # SAMix.load("runs/mine")


def load_mixer(source: str | PathLike[str] | None = None) -> FrozenMixer:
    """A trained Mixer, frozen, as a policy: `Mix(load_mixer("runs/mine"), classes=12)`.

    The name of a shipped one (None: 'tiny'), a run folder, a file, or hf://owner/name[@revision].
    """
    from samix.runs.mixers import load_mixer as load  # late: it reads files, which the rest does without

    return load(source)


__all__ = [
    "ENCODERS",
    "MIXUPS",
    "AdAutoMix",
    "AdAutoMixed",
    "Adjusting",
    "Adversary",
    "AlignMix",
    "AttentiveMix",
    "AugMix",
    "CatchUpMix",
    "AutoMixed",
    "ClusterMixup",
    "CoMixup",
    "CutMix",
    "Encoder",
    "FMix",
    "FrozenMixer",
    "GridMix",
    "GuidedMixup",
    "InstanceMixup",
    "LearnedMixup",
    "ManifoldMix",
    "MaskLoss",
    "Mix",
    "MixUp",
    "MixPro",
    "Mixed",
    "Mixer",
    "MixerConfig",
    "MixerWatch",
    "Mixing",
    "MixupCutMix",
    "MixupTransMix",
    "MixupTokenMix",
    "MomentumCopy",
    "Objective",
    "Pairing",
    "PatchUp",
    "Policy",
    "PuzzleMix",
    "ResizeMix",
    "SAMix",
    "SAMixC",
    "SAMixI",
    "SMMix",
    "SaliencyMix",
    "SmoothMix",
    "SnapMix",
    "Speed",
    "SuperMix",
    "Supervised",
    "Switch",
    "TLAlign",
    "TokenMix",
    "TransMix",
    "__version__",
    "blend",
    "build_encoder",
    "draw_pairing",
    "linear_head",
    "load_classifier",
    "load_mixer",
    "load_model",
    "mixed_accuracy",
]
