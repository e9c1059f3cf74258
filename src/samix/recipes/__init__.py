"""Recipes: every row is a typed value; `samix recipes` lists them."""

from samix.engine.pretraining import Pretraining
from samix.engine.recipe import Recipe
from samix.engine.training import Training
from samix.recipes.base import Family, as_published, row, speedy
from samix.recipes.base import find_recipe as _find_recipe
from samix.recipes.cifar10_small import CIFAR10_LONG, CIFAR10_SMALL
from samix.recipes.embedded import DEMO, DIGITS
from samix.recipes.few_photos import FLOWERS_LITE0, PETS_LITE0
from samix.recipes.imagenet import IMAGENET_R18, IMAGENET_R50
from samix.recipes.mixers import MIXER, SSL_MIXER
from samix.recipes.modern import IMAGENET_DEIT_S, IMAGENET_R50_A3, IMAGENET_R50_A3_MBCE, IMAGENET_SWIN_T
from samix.recipes.own_pictures import FOLDER
from samix.recipes.small_images import CIFAR100_R18, TINY_R18
from samix.recipes.ssl_base import PRESETS, Preset, PretrainingFamily
from samix.recipes.ssl_base import find_pretraining as _find_pretraining
from samix.recipes.ssl_paper import IMAGENET_R50_SSL, IMAGENET_VIT_SSL, TINY_R18_SSL
from samix.recipes.ssl_small import SSL_DEMO, SSL_FOLDER, SSL_SMALL

RECIPES: dict[str, Family] = {
    "demo": DEMO,
    "digits": DIGITS,
    "folder": FOLDER,
    "mixer": MIXER,
    "flowers-lite0": FLOWERS_LITE0,
    "pets-lite0": PETS_LITE0,
    "cifar10-small": CIFAR10_SMALL,
    "cifar10-long": CIFAR10_LONG,
    "cifar100-r18": CIFAR100_R18,
    "tiny-r18": TINY_R18,
    "imagenet-r18": IMAGENET_R18,
    "imagenet-r50": IMAGENET_R50,
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
    "tiny-r18-ssl": TINY_R18_SSL,
    "imagenet-r50-ssl": IMAGENET_R50_SSL,
    "imagenet-vit-ssl": IMAGENET_VIT_SSL,
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
    "FOLDER",
    "IMAGENET_DEIT_S",
    "IMAGENET_R18",
    "IMAGENET_R50",
    "IMAGENET_R50_A3",
    "IMAGENET_R50_A3_MBCE",
    "IMAGENET_R50_SSL",
    "IMAGENET_SWIN_T",
    "IMAGENET_VIT_SSL",
    "MIXER",
    "PETS_LITE0",
    "PRESETS",
    "PRETRAININGS",
    "RECIPES",
    "SSL_DEMO",
    "SSL_FOLDER",
    "SSL_MIXER",
    "SSL_SMALL",
    "TINY_R18",
    "TINY_R18_SSL",
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
