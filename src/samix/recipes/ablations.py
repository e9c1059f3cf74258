"""What each part of SAMix brings, with labels: modules one by one, eta, alpha.

samix train tiny-r18-parts/samix-content      the paper's table, Tiny-ImageNet; GPU
samix train pets-parts/samix-content       the same at a size for CPUs   ours: results/pets_parts.csv
The same table without labels: ssl_ablations.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from samix.learned import LearnedMixup
from samix.recipes.base import Family, Learned, row
from samix.recipes.few_photos import PETS_LITE0
from samix.recipes.paper import read_table
from samix.recipes.small_images import SAMIX, TINY, TINY_MIXER

TABLE = read_table(
    "tab:ablation_mixblock",
    ("SL", "CL"),
    """
    Mixing attention     67.17  40.58
    +Adaptive lambda     67.95  41.82
    +Non-linear content  68.46  42.45
    +L_mask              68.57  42.68
    +lambda adjusting    68.61  43.14
    +ell_eta (eta=0.5)   68.82  43.68
    """,
)
PARTS: Mapping[str, str] = {
    "samix-attention": "Mixing attention",
    "samix-adaptive": "+Adaptive lambda",
    "samix-content": "+Non-linear content",
    "samix-mask": "+L_mask",
    "samix-adjusting": "+lambda adjusting",
    "samix-eta": "+ell_eta (eta=0.5)",
}
ETAS, ALPHAS = (0.0, 0.1, 0.25, 0.75, 1.0), (0.2, 0.5, 1.0, 4.0)
"""Beside .5 and 2, which SAMix has; the paper does not say which values its figures show."""


def parts(samix: Learned) -> dict[str, Learned]:
    """SAMix put together part by part; every row has what the rows before it have, the last is SAMix.

    Before they come in, lam is one more channel of the maps, the content is linear, masks have no loss of
    their own, are never adjusted, and the Mixer learns from mixup cross-entropy alone, as AutoMix does.
    """
    bare = replace(samix.mixer, encoding="concat", content="linear")
    attention = replace(
        samix,
        mixer=bare,
        mask=replace(samix.mask, beta=0.0, beta_end=None),
        adjusting=replace(samix.adjusting, prob=0.0),
        local=0.0,
        eta=1.0,
    )
    adaptive = replace(attention, mixer=replace(bare, encoding=samix.mixer.encoding))
    content = replace(adaptive, mixer=samix.mixer)
    mask = replace(content, mask=samix.mask)
    adjusting = replace(mask, adjusting=samix.adjusting)
    return dict(zip(PARTS, (attention, adaptive, content, mask, adjusting, samix), strict=True))


def sweep(samix: LearnedMixup) -> dict[str, LearnedMixup]:
    """SAMix with other values of eta and alpha."""
    etas = {f"samix-eta-{eta:g}": replace(samix, eta=eta) for eta in ETAS}
    return etas | {f"samix-alpha-{alpha:g}": replace(samix, alpha=alpha) for alpha in ALPHAS}


TINY_ROWS = {**parts(SAMIX), **sweep(SAMIX)}
TINY_PARTS = Family(
    "What Mixer's parts, eta and alpha bring on Tiny-ImageNet, ResNet-18, 400 epochs; paper; GPU.",
    {name: row(TINY, mixup, learned=TINY_MIXER, clean=1.0) for name, mixup in TINY_ROWS.items()},
    default="samix-eta",
    cells=TABLE.column("SL", PARTS),
)

# Row samix of few photographs is the end of this ladder: masks of mean lam by construction, then evidence.
OURS = PETS_LITE0.rows["samix"]
EVIDENCE = cast(LearnedMixup, OURS.mixup)
BALANCED = replace(EVIDENCE, mask=replace(EVIDENCE.mask, evidence=0.0))
PAPER = LearnedMixup()
PETS_ROWS = {
    **parts(PAPER),
    "samix-balanced": BALANCED,
    "samix-evidence": EVIDENCE,
    **{f"samix-eta-{eta:g}": replace(PAPER, eta=eta) for eta in (0.0, 0.1, 1.0)},
}
PETS_PARTS = Family(
    "What Mixer's parts, eta and our two settings bring on Oxford Pets, as pets-lite0; CPU.",
    {name: replace(OURS, mixup=mixup) for name, mixup in PETS_ROWS.items()},
    default="samix-evidence",
)
