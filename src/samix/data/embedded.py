"""Sets that need no files: drawn shapes, and scikit-learn's digits."""

import torch

from samix.core.seeds import fold
from samix.data.sets import IMAGENET_STATS, ImageSet, Split
from samix.data.synthetic import SHAPES, draw_pictures

MOST_DRAWN, MOST_DRAWN_BYTES = 200_000, 2**32
"""Pictures of the embedded set, and what they may take together: more would take minutes and all memory."""


def draw_set(size: int, train: int, test: int, seed: int) -> Split:
    """Drawn shapes of 12 classes."""
    counts = (train, test)
    if max(counts) > MOST_DRAWN or sum(counts) * 3 * size**2 > MOST_DRAWN_BYTES:
        raise ValueError(
            f"{train} training and {test} test pictures of {size} px are more than the "
            f"embedded set draws: at most {MOST_DRAWN} of either, {MOST_DRAWN_BYTES >> 30} GB together. Take "
            "fewer, or smaller ones."
        )
    parts = [
        draw_pictures(count, size=size, seed=fold(seed, which))
        for count, which in zip(counts, ("train", "test"), strict=True)
    ]
    learned, tested = (ImageSet(part.images, part.labels, tuple(SHAPES)) for part in parts)
    return Split(learned, tested, *IMAGENET_STATS)


def read_digits(size: int, seed: int) -> Split:
    """1,797 handwritten digits of 8 x 8, enlarged; 450 of them to test on."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    grey = torch.from_numpy(bunch.images * (255 / 16)).round().to(torch.uint8)  # [N, 8, 8]
    pictures = grey[:, None].expand(-1, 3, -1, -1)
    pictures = torch.nn.functional.interpolate(pictures.float(), (size, size)).to(torch.uint8)
    labels = torch.from_numpy(bunch.target).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(fold(seed)))
    names = tuple(str(digit) for digit in range(10))
    test, train = order[:450], order[450:]
    return Split(
        ImageSet(pictures[train], labels[train], names),
        ImageSet(pictures[test], labels[test], names),
        *IMAGENET_STATS,
    )
