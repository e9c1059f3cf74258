"""What the paper's tables without labels share: MoCo v2's settings, mixups, and rows by the paper's names.

Sources of every setting: docs/self_supervised.md.
"""

from typing import Any

from samix.data import Data
from samix.engine.optim import Optimizer
from samix.engine.pretrained import PretrainedMixup
from samix.engine.pretraining import Pretraining
from samix.learned import Adjusting, ClusteredPuzzleMix, ClusterMixup, InstanceMixup
from samix.methods.ssl import MoCoV2
from samix.mixups.published import published
from samix.mixups.puzzlemix import PuzzleMix
from samix.nn.zoo import Network
from samix.recipes.base import as_published
from samix.recipes.paper import Cells
from samix.recipes.ssl_base import PretrainingFamily

MOCO = Optimizer(lr=0.03, weight_decay=1e-4, mixer_lr=0.03, mixer_min_lr=3e-4)
GROUPS = 8
"""Of batch norm: the eight processes between which MoCo shuffles its keys, however many there are."""
SAMIX_I, SAMIX_C = as_published(InstanceMixup()), as_published(ClusterMixup())
SOURCE = "imagenet-r50-ssl-100"
"""The family whose runs train the Mixers of the rows -P: ImageNet, ResNet-50, 100 epochs."""


def frozen(name: str, size: int | None = None) -> PretrainedMixup:
    """SAMix-I^P or SAMix-C^P: the Mixer that a run of `SOURCE` has learned, looking at pictures of `size` px.

    Masks are adjusted as in SAMix-I, where their mean is more than .1 from lam.
    """
    run = f"runs/{SOURCE}/moco-v2+{name}/0"
    return PretrainedMixup(mixer=run, size=size, adjusting=Adjusting(margin=0.1))


def mixups(size: int | None = None) -> dict[str, Any]:
    """Mixups of the tables that are no hand-made policies; `size` is the frozen Mixers'."""
    puzzlemix = published("puzzlemix", "ssl")
    assert isinstance(puzzlemix, PuzzleMix)
    return {
        "samix-i": SAMIX_I,
        "samix-c": SAMIX_C,
        "samix-i-p": frozen("samix-i", size),
        "samix-c-p": frozen("samix-c", size),
        "puzzlemix-pl": ClusteredPuzzleMix(policy=puzzlemix),
    }


SMALL = Pretraining(
    data=Data(name="tiny-imagenet", size=96, workers=4),
    encoder=Network(name="resnet18"),
    method=MoCoV2(queue=16384, norm_groups=GROUPS),
    optimizer=MOCO,
    augment="moco-v2",
    epochs=400,
    batch_size=256,
    eval_every=10,
    save_every=5,
)
"""MoCo v2 on pictures of 96 px: Tiny-ImageNet, and STL-10 but for the data."""


def paper_family(
    about: str, methods: dict[str, Pretraining], cells: Cells, variants: dict[str, Any]
) -> PretrainingFamily:
    """A family whose rows are those of the paper, and whose hand-made mixups are as published."""
    return PretrainingFamily(about, methods, variants, tuple(cells), cells, "ssl")
