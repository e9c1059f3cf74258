"""What the Mixer learns from and what its parts bring, without labels: the paper's two tables and its sweeps.

samix pretrain stl10-r18-ssl-losses/moco-v2+samix-c-ce    mixup cross-entropy of pseudo labels
samix pretrain tiny-r18-ssl-losses/moco-v2+samix-i-bce    the local term of Eq. (7) alone
samix pretrain tiny-r18-ssl-parts/moco-v2+samix-c-content
samix pretrain tiny-r18-ssl-sweeps/moco-v2+samix-c-clusters-50
The table of the Mixer's parts with labels: ablations.py.
"""

from dataclasses import replace
from typing import Any

from samix.engine.pretraining import Pretraining
from samix.recipes.ablations import PARTS, parts
from samix.recipes.ablations import TABLE as PARTS_TABLE
from samix.recipes.paper import NO_CELLS, read_table
from samix.recipes.ssl_base import PretrainingFamily
from samix.recipes.ssl_published import SAMIX_C, SAMIX_I, SMALL, paper_family
from samix.recipes.ssl_stl10 import STL10

LOSS_TABLE = read_table(
    "tab:ablation_loss",
    ("STL-10", "Tiny"),
    """
    BCE                85.25  41.28
    infoNCE            85.36  41.85
    infoNCE (eta=0.5)  85.44  41.97
    CE (PL)            85.56  42.36
    CE (PL)+infoNCE    85.41  42.12
    CE (PL, eta=0.5)   85.60  42.53
    """,
)
LOSS_ROWS = {
    "moco-v2+samix-i-bce": "BCE",
    "moco-v2+samix-i-infonce": "infoNCE",
    "moco-v2+samix-i": "infoNCE (eta=0.5)",
    "moco-v2+samix-c-ce": "CE (PL)",
    "moco-v2+samix-c-ce-infonce": "CE (PL)+infoNCE",
    "moco-v2+samix-c": "CE (PL, eta=0.5)",
}
GLOBAL_I = replace(SAMIX_I, local=0.0, eta=1.0)
GLOBAL_C = replace(SAMIX_C, local=0.0, eta=1.0)
LOSSES = {
    "samix-i": SAMIX_I,
    "samix-i-bce": replace(SAMIX_I, eta=0.0),
    "samix-i-infonce": GLOBAL_I,
    "samix-c": SAMIX_C,
    "samix-c-ce": GLOBAL_C,
    "samix-c-ce-infonce": replace(GLOBAL_C, instance=1.0),
    # Of the figure beside the table: pBCE, and infoNCE without negatives of the positive's cluster.
    "samix-c-bce": replace(SAMIX_C, eta=0.0),
    "samix-c-infonce": replace(GLOBAL_C, eta=0.0, instance=1.0, drop_alike=True),
}
"""What the Mixer learns from: I on instances, C on clusters."""
CLUSTERS, ALPHAS, ETAS = (50, 100, 500, 1000, 2000), (0.2, 0.5, 1.0, 4.0), (0.0, 0.1, 0.25, 0.75, 1.0)
"""Beside 200, 2 and .5, which SAMix-C has; the paper does not say which values its figures show."""
SWEEPS = {
    "samix-c": SAMIX_C,
    **{
        f"samix-c-clusters-{count}": replace(SAMIX_C, clusters=replace(SAMIX_C.clusters, count=count))
        for count in CLUSTERS
    },
    **{f"samix-c-alpha-{alpha:g}": replace(SAMIX_C, alpha=alpha) for alpha in ALPHAS},
    **{f"samix-c-eta-{eta:g}": replace(SAMIX_C, eta=eta) for eta in ETAS},
}
"""Figures of alpha, eta and the number of clusters."""


def losses(data: str, base: Pretraining, column: str) -> PretrainingFamily:
    """The rows of one column of the table of losses, and the figure's beside it."""
    cells = LOSS_TABLE.column(column, LOSS_ROWS)
    family = paper_family(
        f"What the Mixer learns from without labels, {data}, ResNet-18, 400 epochs; the paper's table; GPU.",
        {"moco-v2": base},
        cells,
        LOSSES,
    )
    return family._replace(rows=tuple(f"moco-v2+{name}" for name in LOSSES))


def with_prefix(rows: dict[str, Any]) -> dict[str, Any]:
    """'samix-mask' -> 'samix-c-mask': rows named as those with labels are."""
    return {name.replace("samix", "samix-c", 1): value for name, value in rows.items()}


ABLATIONS_SSL = {
    "stl10-r18-ssl-losses": losses("STL-10", STL10, "STL-10"),
    "tiny-r18-ssl-losses": losses("Tiny-ImageNet", SMALL, "Tiny"),
    "tiny-r18-ssl-parts": paper_family(
        "What the Mixer's parts bring without labels, Tiny-ImageNet, ResNet-18; the paper's table; GPU.",
        {"moco-v2": SMALL},
        PARTS_TABLE.column("CL", {f"moco-v2+{name}": row for name, row in with_prefix(dict(PARTS)).items()}),
        with_prefix(parts(SAMIX_C)),
    ),
    "tiny-r18-ssl-sweeps": PretrainingFamily(
        "SAMix-C with other alphas, etas and numbers of clusters on Tiny-ImageNet, ResNet-18; figures; GPU.",
        {"moco-v2": SMALL},
        SWEEPS,
        tuple(f"moco-v2+{name}" for name in SWEEPS),
        NO_CELLS,
        "ssl",
    ),
}
