"""What the paper and the official configurations say of a setting, for `samix recipes NAME`.

The third column, what is so here, is read off the recipe itself. A dash: nothing is said.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Said(NamedTuple):
    """One setting and its sources."""

    field: str
    """Its name in a recipe."""
    paper: str = "-"
    official: str = "-"
    why: str = ""
    """Why it is as it is here, where the two disagree or say nothing."""


SGD = (
    Said("optimizer.name", "SGD, cosine", "SGD, momentum .9, no Nesterov"),
    Said("data.view", "-", "random resized crop (.08, 1), bicubic; flip; no colour jitter"),
    Said("data.test_resize", "-", "256, centre crop"),
)
IMAGENET = (
    Said("epochs", "100, 300", "100, 300"),
    Said("batch_size", "-", "256 (4 x 64)"),
    Said("optimizer.lr", "-", ".1"),
    Said("optimizer.weight_decay", "-", "1e-4, on every parameter"),
    *SGD,
)
CIFAR_TINY = (
    Said("epochs", "-", "200 to 1200; CIFAR 800 (WRN 400) and Tiny 400 have the paper's accuracies"),
    Said("batch_size", "-", "100"),
    Said("optimizer.lr", "-", "CIFAR .1 (WRN .03), Tiny .2, fine-grained .001 and batch 16"),
    Said("optimizer.weight_decay", "-", "1e-4 (WRN 1e-3, fine-grained 5e-4; RX-50 with cutting mixups 5e-4)"),
    Said("optimizer.min_lr", "-", "0; learned mixups on CIFAR and Tiny .05", "helps the momentum copy"),
    Said("data.view", "-", "CIFAR: reflect padding 4, crop, flip; others random resized crop"),
    Said("encoder.weights", "ImageNet for fine-grained sets", "torchvision's"),
    Said("optimizer.name", "SGD, cosine", "SGD, momentum .9, no Nesterov"),
)
MODERN = (
    Said("epochs", "A3 100, DeiT and Swin 300", "the same"),
    Said("batch_size", "-", "A3 2048, DeiT and Swin 1024"),
    Said("optimizer.name", "LAMB; AdamW", "the same"),
    Said("optimizer.lr", "-", "A3 .008, others 1e-3"),
    Said("optimizer.weight_decay", "-", "A3 .02, others .05; none on norms and biases"),
    Said("optimizer.warmup_epochs", "-", "A3 5, DeiT 5, Swin 20"),
    Said("objective.smoothing", "-", "A3 none, others .1, on the mixed label"),
    Said("data.size", "A3 160", "A3 160, tested at 224; others 224"),
)
WITHOUT_LABELS = (
    Said("epochs", "STL-10 400 and 800, others as their methods", "ImageNet 200, by the accuracies"),
    Said("batch_size", "MoCo v2: 256", "MoCo 256; SimCLR 512; BYOL, SwAV, MoCo v3 4096"),
    Said("optimizer.lr", "MoCo v2: .03", "by method"),
    Said("optimizer.weight_decay", "MoCo v2: 1e-4", "by method"),
    Said("method.queue", "65536; STL-10 and Tiny 16384", "65536"),
    Said("method.tau", "-", "MoCo v2 .2, others by method"),
    Said("data.size", "224; STL-10 and Tiny 96", "224, 96"),
)
TABLES: Mapping[str, tuple[Said, ...]] = MappingProxyType(
    {
        "tab:sl_IN_torch": IMAGENET,
        "tab:sl_inat_place": IMAGENET,
        "tab:sl_cifar_tiny_finegrained": CIFAR_TINY,
        "tab:sl_IN_rsb_deit": MODERN,
        "tab:stl_ssl": WITHOUT_LABELS,
        "tab:imagenet_ssl": WITHOUT_LABELS,
        "tab:imagenet_ssl_extend": WITHOUT_LABELS,
        "tab:imagenet_ssl_vit": WITHOUT_LABELS,
        "tab:ablation_loss": WITHOUT_LABELS,
        "tab:ablation_mixblock": CIFAR_TINY,
    }
)
"""By table."""

HAND_MADE = (
    Said(
        "mixup.alpha", "the best of .1, .2, .5, 1, 2, 4; see docs/deviations.md", "OpenMixup's lists, by set"
    ),
)
FROZEN = (
    Said("mixup.mixer", "SAMix on ImageNet-1k, 100 epochs, ResNet-18; without labels ResNet-50", "-"),
    Said("mixup.alpha", "2", "2"),
    Said(
        "mixup.adjusting.rule", "scale", "-", "nobody says how often frozen masks are adjusted: always here"
    ),
)
LEARNED = (
    Said("mixup.alpha", "2", "2"),
    Said(
        "mixup.eta",
        ".5 on CIFAR-100, Tiny, CUB, Aircraft and without labels; .1 on ImageNet and iNaturalist",
        "a weight that has no effect with softmax",
        "the paper's two terms; Places205, which it does not name, has .1",
    ),
    Said("mixup.mask.beta", ".1, falling to 0", ".1; elsewhere a schedule that compounds and vanishes early"),
    Said("mixup.mask.margin", ".1", ".1"),
    Said("mixup.mask.variance", "added, though meant to encourage it", "2, subtracted"),
    Said("mixup.adjusting.prob", "at test time", "0; .25 in the best configuration of CIFAR-100"),
    Said("mixup.mixer.gamma", "starts at 0", "fixed at 1", "from 0 it does not wake up in short runs"),
    Said("mixup.mixer.dropout", ".1", "0 on CIFAR and Tiny, .1 elsewhere"),
    Said(
        "mixup.per_sample", "one lam a batch", "one lam a batch", "batch norm takes a common factor out again"
    ),
    Said("mixup.copy.momentum", "-", ".999"),
    Said("mixup.copy.momentum_end", "-", ".999999 on small pictures, .99999 elsewhere, Aircraft .99996"),
    Said("optimizer.mixer_lr", "-", ".1; WRN .03, fine-grained .01, transformers 1e-3"),
    Said("optimizer.mixer_min_lr", "-", "by set"),
    Said("objective.clean_weight", "-", "1, with a head of its own"),
)
