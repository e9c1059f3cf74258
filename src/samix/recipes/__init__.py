"""Recipes: every row is a typed value; `samix recipes` lists them."""

from samix.engine.pretraining import Pretraining
from samix.engine.recipe import Recipe
from samix.engine.training import Training
from samix.recipes.ablations import PETS_PARTS, TINY_PARTS
from samix.recipes.base import Family, as_published, row, speedy
from samix.recipes.base import find_recipe as _find_recipe
from samix.recipes.cifar10_small import CIFAR10_LONG, CIFAR10_SMALL
from samix.recipes.embedded import DEMO, DIGITS
from samix.recipes.few_photos import FLOWERS_LITE0, PETS_LITE0
from samix.recipes.imagenet import IMAGENET
from samix.recipes.inat_places import INAT_PLACES
from samix.recipes.mixers import MIXER, SSL_MIXER
from samix.recipes.modern import IMAGENET_DEIT_S, IMAGENET_R50_A3, IMAGENET_R50_A3_MBCE, IMAGENET_SWIN_T
from samix.recipes.own_pictures import FOLDER
from samix.recipes.small_images import CIFAR100_R18, FINE_GRAINED, SMALL_IMAGES, TINY_R18
from samix.recipes.ssl_ablations import ABLATIONS_SSL
from samix.recipes.ssl_base import PRESETS, Preset, PretrainingFamily
from samix.recipes.ssl_base import find_pretraining as _find_pretraining
from samix.recipes.ssl_imagenet import IMAGENET_SSL
from samix.recipes.ssl_methods import METHODS_SSL
from samix.recipes.ssl_small import SSL_DEMO, SSL_FOLDER, SSL_SMALL
from samix.recipes.ssl_stl10 import STL10_SSL
from samix.recipes.ssl_studies import STUDIES_SSL
from samix.recipes.ssl_vit import VIT_SSL

RECIPES: dict[str, Family] = {
    "demo": DEMO,
    "digits": DIGITS,
    "folder": FOLDER,
    "mixer": MIXER,
    "flowers-lite0": FLOWERS_LITE0,
    "pets-lite0": PETS_LITE0,
    "pets-parts": PETS_PARTS,
    "cifar10-small": CIFAR10_SMALL,
    "cifar10-long": CIFAR10_LONG,
    **SMALL_IMAGES,
    "tiny-r18-parts": TINY_PARTS,
    **FINE_GRAINED,
    **IMAGENET,
    **INAT_PLACES,
    "imagenet-r50-a3": IMAGENET_R50_A3,
    "imagenet-r50-a3-mbce": IMAGENET_R50_A3_MBCE,
    "imagenet-deit-s": IMAGENET_DEIT_S,
    "imagenet-swin-t": IMAGENET_SWIN_T,
}
PRETRAININGS: dict[str, PretrainingFamily] = {
    "ssl-demo": SSL_DEMO,
    "ssl-small": SSL_SMALL,
    "ssl-folder": SSL_FOLDER,
    "ssl-mixer": SSL_MIXER,
    **STL10_SSL,
    **IMAGENET_SSL,
    **METHODS_SSL,
    **VIT_SSL,
    **ABLATIONS_SSL,
    **STUDIES_SSL,
}


def find_recipe(name: str, mixup: str | None = None) -> tuple[str, Training]:
    """The recipe 'family/row', or the family's row for a mixup, with its full name."""
    if name.partition("/")[0] in PRETRAININGS:
        raise ValueError(f"{name!r} learns without labels: `samix pretrain {name}`.")
    return _find_recipe(RECIPES, name, mixup)


def find_pretraining(
    name: str, method: str | None = None, mixup: str | None = None
) -> tuple[str, Pretraining]:
    """The pre-training 'family/METHOD+MIXUP' with its full name."""
    if name.partition("/")[0] in RECIPES:
        raise ValueError(f"{name!r} learns from labels: `samix train {name}`.")
    return _find_pretraining(PRETRAININGS, name, method, mixup)


__all__ = [
    "CIFAR10_LONG",
    "CIFAR10_SMALL",
    "CIFAR100_R18",
    "DEMO",
    "DIGITS",
    "FLOWERS_LITE0",
    "PETS_PARTS",
    "FOLDER",
    "IMAGENET_DEIT_S",
    "IMAGENET_R50_A3",
    "IMAGENET_R50_A3_MBCE",
    "IMAGENET_SWIN_T",
    "MIXER",
    "PETS_LITE0",
    "PRESETS",
    "PRETRAININGS",
    "RECIPES",
    "SSL_DEMO",
    "SSL_FOLDER",
    "SSL_MIXER",
    "SSL_SMALL",
    "TINY_PARTS",
    "TINY_R18",
    "Family",
    "Preset",
    "Pretraining",
    "PretrainingFamily",
    "Recipe",
    "Training",
    "as_published",
    "find_pretraining",
    "find_recipe",
    "row",
    "speedy",
]
