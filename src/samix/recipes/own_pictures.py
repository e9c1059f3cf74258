"""Pictures of one's own: a folder per class is all it takes.  samix train folder --data.root PICTURES

docs/own_pictures.md tells what a folder may look like and which settings to try first.
"""

from dataclasses import replace

from samix.data import Data
from samix.recipes.base import Family
from samix.recipes.few_photos import BASE, photo_rows

# Reduced when read: a crop of the smallest share, .35, then has its `size` pixels, and photographs of many
# megapixels fit into memory.
PICTURES = Data(
    name="folder", size=128, view="resized-crop", min_scale=0.35, test_zoom=1.15, shrink=1.75, workers=2
)
# Nobody knows how far these pictures are from ImageNet's, so every stage may learn.
WHOLE = replace(BASE.encoder, frozen=0)
FOLDER = Family(
    "Your own pictures in a folder per class, trained EfficientNet-Lite0 at 128 px, 20 epochs.",
    photo_rows(replace(BASE, data=PICTURES, encoder=WHOLE, min_steps=4, eval_every=1, save_every=1)),
)
