"""What a data set is to the rest: pictures with labels, a part to learn from and a part to test on."""

from typing import NamedTuple, TypeAlias

from torch import Tensor

from samix.core.shapes import Labels, Stats
from samix.data.folders import LazyPictures
from samix.data.packs import Packed
from samix.data.shards import Shards

CIFAR_STATS = Stats((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
IMAGENET_STATS = Stats((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

Undecoded: TypeAlias = Packed | LazyPictures | Shards
"""Pictures in files: `read` decodes one, `pick` takes some, `decode` all of them if they fit into memory."""
Pictures: TypeAlias = Tensor | list[Tensor] | Undecoded
"""uint8 [3, H, W] each, one tensor [N, 3, H, W] where all sizes agree; or not decoded yet."""


class ImageSet(NamedTuple):
    """Pictures with their labels and the names of the classes."""

    pictures: Pictures
    labels: Labels
    classes: tuple[str, ...]


class Split(NamedTuple):
    """A dataset: what to learn from and what to test on, with the statistics to normalise by."""

    train: ImageSet
    test: ImageSet
    mean: tuple[float, ...]
    std: tuple[float, ...]
    known: ImageSet | None = None
    """Labelled pictures to judge features by, where `train` has no labels but the set has some elsewhere."""

    @property
    def stats(self) -> Stats:
        """How its images are normalised."""
        return Stats(self.mean, self.std)

    @property
    def labelled(self) -> "Split":
        """The same set with labelled pictures to learn from: what k-NN and linear probes take."""
        return self if self.known is None else self._replace(train=self.known, known=None)

    def normalised_by(self, stats: Stats | None) -> "Split":
        """The same pictures, normalised by other statistics; None: by their own."""
        return self if stats is None else self._replace(mean=stats.mean, std=stats.std)
