"""Table of iNaturalist 2017 and 2018 and of Places205.

samix train inat2017-r50/samix --data.root FOLDER      docs/data.md tells how the folder looks
"""

from dataclasses import replace

from samix.mixups.published import DataSet
from samix.nn.zoo import Network
from samix.recipes.base import Family, LearnedRows, short_name, table_rows
from samix.recipes.imagenet import AUTOMIX, BASE, NETWORKS, SAMIX
from samix.recipes.paper import WITH_FROZEN, read_table

TABLE = read_table(
    "tab:sl_inat_place",
    (
        "iNat2017 / R-50",
        "iNat2017 / RX-101",
        "iNat2018 / R-50",
        "iNat2018 / RX-101",
        "Places205 / R-18",
        "Places205 / R-50",
    ),
    """
    Vanilla      60.23  63.70  62.53  66.94  59.63  63.10
    Mixup        61.22  66.27  62.69  67.56  59.33  63.01
    CutMix       62.34  67.59  63.91  69.75  59.21  63.75
    ManifoldMix  61.47  66.08  63.46  69.30  59.46  63.23
    SaliencyMix  62.51  67.20  64.27  70.01  59.50  63.33
    FMix         61.90  66.64  63.71  69.46  59.51  63.63
    PuzzleMix    62.66  67.72  64.36  70.12  59.62  63.91
    ResizeMix    62.29  66.82  64.12  69.30  59.66  63.88
    AutoMix      63.08  68.03  64.73  70.49  59.74  64.06
    SAMix^P      63.38  68.23  65.16  70.56  59.82  64.35
    SAMix        63.32  68.26  64.84  70.54  59.86  64.27
    """,
)


def make_family(column: str) -> Family:
    """The rows of one column."""
    printed, network = column.split(" / ")
    places = printed == "Places205"
    data: DataSet = "places" if places else "inat"
    base = replace(
        BASE, data=replace(BASE.data, name=printed.lower()), encoder=Network(name=NETWORKS[network])
    )
    mixer = replace(BASE.optimizer, mixer_lr=0.1, mixer_min_lr=1e-3 if network == "R-18" else 1e-4)
    rows = table_rows(base, data, LearnedRows(SAMIX, AUTOMIX, mixer), frozen=True)
    if places:
        rows["automix"] = replace(rows["automix"], optimizer=replace(mixer, mixer_min_lr=1e-3))
    return Family(
        f"{printed}, {network}, 100 epochs; the paper's table; several GPUs.",
        rows,
        published=data,
        cells=TABLE.column(column, WITH_FROZEN),
    )


INAT_PLACES = {
    f"{printed.lower()}-{short_name(network)}": make_family(f"{printed} / {network}")
    for printed, network in (column.split(" / ") for column in TABLE.columns)
}
