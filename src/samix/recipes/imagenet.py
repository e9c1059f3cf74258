"""Table of ImageNet-1k in the PyTorch procedure, 100 and 300 epochs.

samix train imagenet-r50/samix --data.root <folder with train/ and val/>
samix train imagenet-r50-300/samix-p --data.root ... --mixup.mixer RUN
"""

from dataclasses import replace

from samix.data import Data
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.training import Training
from samix.learned import Adjusting, AutoMixed, LearnedMixup, MixerConfig
from samix.mixups.published import DataSet
from samix.nn.zoo import Network
from samix.recipes.base import Family, LearnedRows, as_published, short_name, table_rows
from samix.recipes.paper import WITH_FROZEN, read_table

NETWORKS = {
    "R-18": "resnet18",
    "R-34": "resnet34",
    "R-50": "resnet50",
    "R-101": "resnet101",
    "RX-101": "resnext101",
}
"""By the names of the table."""
TABLE = read_table(
    "tab:sl_IN_torch",
    (
        "PyTorch 100ep / R-18",
        "PyTorch 100ep / R-34",
        "PyTorch 100ep / R-50",
        "PyTorch 100ep / R-101",
        "PyTorch 100ep / RX-101",
        "PyTorch 300ep / R-18",
        "PyTorch 300ep / R-34",
        "PyTorch 300ep / R-50",
        "PyTorch 300ep / R-101",
    ),
    """
    Vanilla      70.04  73.85  76.83  78.18  78.71  71.83  75.29  77.35  78.91
    Mixup        69.98  73.97  77.12  78.97  79.98  71.72  75.73  78.44  80.60
    CutMix       68.95  73.58  77.17  78.96  80.42  71.01  75.16  78.69  80.59
    ManifoldMix  69.98  73.98  77.01  79.02  79.93  71.73  75.44  78.21  80.64
    SaliencyMix  69.16  73.56  77.14  79.32  80.27  70.21  75.01  78.46  80.45
    FMix         69.96  74.08  77.19  79.09  80.06  70.30  75.12  78.51  80.20
    PuzzleMix    70.12  74.26  77.54  79.43  80.63  71.64  75.84  78.86  80.67
    ResizeMix    69.50  73.88  77.42  79.27  80.55  71.32  75.64  78.91  80.52
    AutoMix      70.50  74.52  77.91  79.87  80.89  72.05  76.10  79.25  80.98
    SAMix^P      70.83  74.95  78.06  80.05  80.98  72.27  76.28  79.39  81.10
    SAMix        70.85  74.96  78.11  80.02  81.03  72.33  76.35  79.40  81.06
    """,
)

BASE = Training(
    data=Data(name="folder", size=224, view="resized-crop", test_resize=256, workers=8),
    encoder=Network(name="resnet18"),
    optimizer=Optimizer(lr=0.1, weight_decay=1e-4),
    machine=Machine(precision="16-mixed"),
    epochs=100,
    batch_size=256,
)
SAMIX, AUTOMIX = (
    replace(policy, adjusting=Adjusting(prob=0.0), copy=replace(policy.copy, momentum_end=0.99999))
    for policy in map(as_published, (LearnedMixup(eta=0.1, mixer=MixerConfig(dropout=0.1)), AutoMixed()))
)


def make_family(network: str, epochs: int) -> Family:
    """The rows of one column."""
    base = replace(BASE, encoder=Network(name=NETWORKS[network]), epochs=epochs)
    # The official configuration of ResNet-50 for 100 epochs, and no other, has no momentum for the Mixer.
    momentum = 0.0 if (network, epochs) == ("R-50", 100) else 0.9
    optimizer = replace(BASE.optimizer, mixer_lr=0.1, mixer_min_lr=1e-3, mixer_momentum=momentum)
    data: DataSet = "imagenet-r18" if network == "R-18" else "imagenet"
    return Family(
        f"ImageNet-1k, {network}, {epochs} epochs; the paper's table; several GPUs.",
        table_rows(base, data, LearnedRows(SAMIX, AUTOMIX, optimizer), frozen=True),
        published=data,
        cells=TABLE.column(f"PyTorch {epochs}ep / {network}", WITH_FROZEN),
    )


COLUMNS = [(network, epochs) for epochs in (100, 300) for network in NETWORKS]
COLUMNS.remove(("RX-101", 300))  # the paper has no such column
IMAGENET = {
    f"imagenet-{short_name(network)}{'' if epochs == 100 else f'-{epochs}'}": make_family(network, epochs)
    for network, epochs in COLUMNS
}
"""imagenet-r18, ..., imagenet-r18-300, ..."""
