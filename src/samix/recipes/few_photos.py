"""A trained network learns from a few photographs: EfficientNet-Lite0 with ImageNet weights, on a CPU.

samix train flowers-lite0/samix-p   10 pictures of each of 102 flowers
samix train pets-lite0/samix-p      15 pictures of each of 37 breeds
ours: results/few_photos.csv; which pictures are for what: docs/few_photos.md
"""

from dataclasses import replace

from samix.contract import Plain
from samix.data import Data
from samix.engine.optim import Optimizer
from samix.engine.pretrained import PretrainedMixup
from samix.engine.training import Training
from samix.learned import AutoMixed, LearnedMixup, MaskLoss, MixerConfig
from samix.methods.supervised import Objective
from samix.mixups import CutMix, MixUp, PuzzleMix, ResizeMix
from samix.nn.zoo import Network
from samix.recipes.base import Family, row, speedy

# The clean branch shares the head that is tested, which suits few pictures: docs/findings.md.
BASE = Training(
    data=Data(name="flowers102", size=96, view="resized-crop", min_scale=0.35, test_zoom=1.15),
    # Few crops in a batch are a poor sample of what is tested: with its batch's statistics plain training
    # ends at 46 % on Pets, with those of the weights at 69 % (docs/few_photos.md). The last two stages learn.
    encoder=Network(name="lite0", weights="lite0", frozen=6, freeze_norm=True),
    # Mixed to the end, few pictures are learned too slowly: the last two fifths are clean in every row.
    objective=Objective(clean_head=False, mix_until=0.6),
    optimizer=Optimizer(
        name="adamw", lr=5e-4, head_lr=10.0, weight_decay=0.01, warmup_epochs=1.0, mixer_lr=2e-3
    ),
    epochs=20,
    batch_size=36,
    eval_every=20,
    tested_last=1,
    save_every=5,
)
PETS = replace(BASE.data, name="oxford-pets", train_pictures=555, test_pictures=1480)


def photo_rows(base: Training) -> dict[str, Training]:
    """Hand-made and learned mixups, and Mixers that were trained before (`photos`, `photos-c`)."""
    samix = row(
        base,
        LearnedMixup(mixer=MixerConfig(balanced=True), mask=MaskLoss(beta=0.0, evidence=10.0, zoom=4 / 3)),
        clean=1.0,
    )
    return {
        "plain": row(base, Plain()),
        "mixup": row(base, MixUp(alpha=1.0)),
        "cutmix": row(base, CutMix(alpha=1.0, box="paper")),
        "resizemix": row(base, ResizeMix()),
        "puzzlemix": row(base, PuzzleMix()),
        "mixup-clean": row(base, MixUp(alpha=1.0), clean=1.0),
        "cutmix-clean": row(base, CutMix(alpha=1.0, box="paper"), clean=1.0),
        "automix": row(base, AutoMixed(), clean=1.0),
        "samix": samix,
        "samix-fast": speedy(samix),
        # At two thirds of the pictures' side a look costs a sixth of a step.
        "samix-p": row(base, PretrainedMixup(mixer="photos", alpha=1.0, size=64)),
        "samix-c-p": row(base, PretrainedMixup(mixer="photos-c", alpha=1.0, size=64)),
    }


FLOWERS_LITE0 = Family(
    "Flowers-102, 10 pictures a class at 96 px, trained EfficientNet-Lite0, 20 epochs, CPU, minutes a row.",
    photo_rows(BASE),
)
PETS_LITE0 = Family(
    "Oxford Pets, 15 pictures a breed at 96 px, trained EfficientNet-Lite0, 20 epochs, CPU, minutes a row.",
    photo_rows(replace(BASE, data=PETS)),
)
