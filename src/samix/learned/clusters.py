"""Pseudo labels that follow the encoder: the memory of online deep clustering (ODC, arXiv 2006.10645).

One unit vector and one label per training picture, one centroid per cluster. Every iteration moves the rows
of a batch and mends clusters that became too small, so labels change little by little. With `every_epoch`
labels stay within an epoch, and at its end k-means finds new ones in the features that it brought, as
DeepCluster-v2 does (arXiv 2006.09882, appendix).

Differs from the original: a split never leaves a half below the minimum while the cluster has enough members
for two; of a picture that stands twice in a batch, the last key counts; keys that are not finite are ignored.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.distributed import Replicated
from samix.core.seeds import fold
from samix.core.shapes import Embeddings, Index, Labels

Rows = Float[Tensor, "N D"]
RowLabels = Int[Tensor, "N"]
Centroids = Float[Tensor, "C D"]

CHUNK = 8192
FIXED_POINT = 2.0**32


class Clustering(NamedTuple):
    """Which cluster each picture belongs to, and where the clusters are."""

    labels: RowLabels
    centroids: Centroids


def cluster_sizes(labels: RowLabels, clusters: int) -> Int[Tensor, "C"]:
    """How many pictures each cluster has."""
    return torch.bincount(labels, minlength=clusters)


def cluster_means(features: Rows, labels: RowLabels, centroids: Centroids) -> Centroids:
    """The mean of each cluster's unit vectors, not normalised; an empty cluster keeps its centroid.

    Sums are whole numbers in fixed point: their order does not matter, so all processes get the same bits.
    """
    sums = torch.zeros_like(centroids, dtype=torch.long)
    for rows, cluster in zip(features.split(CHUNK), labels.split(CHUNK), strict=True):
        sums.index_add_(0, cluster, (rows * FIXED_POINT).long())
    sizes = cluster_sizes(labels, len(centroids))[:, None]  # [C, 1]
    means = sums.double() / FIXED_POINT / sizes.clamp(min=1)
    return torch.where(sizes > 0, means.to(centroids), centroids)


def most_similar(rows: Rows, centroids: Centroids) -> RowLabels:
    """The centroid with the largest dot product for each row; the first of equals."""
    chosen = [_similarity(chunk, centroids).argmax(dim=1) for chunk in rows.split(CHUNK)]
    return torch.cat(chosen)


def follow_keys(rows: Embeddings, keys: Embeddings, momentum: float) -> Embeddings:
    """m <- norm((1 - momentum) m + momentum norm(z)); m stays where it has no direction or is not finite."""
    moved = torch.lerp(rows, F.normalize(keys, dim=1), momentum)
    length = moved.norm(dim=1, keepdim=True)
    return torch.where(length > 1e-6, moved / length, rows)


def last_places(index: Index) -> Int[Tensor, "U"]:
    """Where each different value of an index stands for the last time."""
    values, which = index.unique(return_inverse=True)
    places = torch.arange(len(index), device=index.device)
    return places.new_zeros(len(values)).scatter_reduce(0, which, places, "amax", include_self=False)


def split_in_two(points: Rows, least: int, generator: torch.Generator, steps: int = 20) -> Bool[Tensor, "N"]:
    """True for the second half of a 2-means split, which starts from the direction of largest spread.

    A half with fewer than `least` points takes those nearest to the border, as far as both can have so many.
    Points that 2-means cannot tell apart are halved at random.
    """
    order = torch.randperm(len(points), generator=generator).to(points.device)
    shuffled = points[order]
    score = _main_component(shuffled)
    side = score > 0
    for _ in range(steps):
        if side.all() or not side.any():
            break
        means = torch.stack([shuffled[~side].mean(dim=0), shuffled[side].mean(dim=0)])  # [2, D]
        closeness = _similarity(shuffled, means) - means.square().sum(dim=1) / 2  # [N, 2]
        score = closeness[:, 1] - closeness[:, 0]
        before, side = side, score > 0
        if torch.equal(side, before):
            break

    count, least = int(side.sum()), min(least, len(points) // 2)
    count = len(points) // 2 if count in (0, len(points)) else min(max(count, least), len(points) - least)
    chosen = score.sort(descending=True, stable=True).indices[:count]
    second = torch.zeros_like(side)
    second[order[chosen]] = True
    return second


def merge_small(features: Rows, labels: RowLabels, centroids: Centroids, min_size: int) -> RowLabels:
    """Members of clusters below `min_size` go to the most similar of the other clusters."""
    sizes = cluster_sizes(labels, len(centroids))
    big = sizes >= sizes.max().clamp(max=min_size)
    if big[sizes > 0].all():
        return labels
    members = (~big)[labels].nonzero()[:, 0]
    open_to = big.nonzero()[:, 0]
    nearest = open_to[most_similar(features[members], centroids[open_to])]
    return labels.index_copy(0, members, nearest)


def fill_empty(
    features: Rows, labels: RowLabels, centroids: Centroids, least: int, generator: torch.Generator
) -> Clustering:
    """Each empty cluster takes one half of the cluster that is the largest at that moment."""
    sizes = cluster_sizes(labels, len(centroids))
    empty = (sizes == 0).nonzero()[:, 0].tolist()
    if not empty:
        return Clustering(labels, centroids)
    labels, centroids = labels.clone(), centroids.clone()
    for cluster in empty:
        largest = int(sizes.argmax())
        members = (labels == largest).nonzero()[:, 0]
        second = split_in_two(features[members], least, generator)
        labels[members[second]] = cluster
        for each, half in ((largest, members[~second]), (cluster, members[second])):
            centroids[each] = features[half].mean(dim=0)
            sizes[each] = len(half)
    return Clustering(labels, centroids)


def repair(
    features: Rows, labels: RowLabels, centroids: Centroids, min_size: int, generator: torch.Generator
) -> Clustering:
    """Empties clusters below `min_size`, then fills all empty ones by splitting the largest.

    Afterwards no cluster is empty, and none is too small if there are 2 * min_size pictures per cluster.
    """
    labels = merge_small(features, labels, centroids, min_size)
    return fill_empty(features, labels, centroids, min_size, generator)


def k_means(features: Rows, clusters: int, seed: int) -> RowLabels:
    """Labels of k-means from one k-means++ start; fewer clusters than asked for if points coincide."""
    from sklearn.cluster import KMeans

    model = KMeans(clusters, n_init=1, max_iter=50, random_state=fold(seed, "k-means") % 2**32)
    labels = model.fit_predict(features.float().cpu().numpy())
    return torch.from_numpy(labels).long().to(features.device)


class ClusterMemory(Replicated):
    """Features and pseudo labels of all training pictures; part of the state that a checkpoint holds.

    Read the labels of a batch, then update it. What an update does depends on the buffers, the index and the
    keys alone (random choices are seeded by `steps`): a resumed run continues bit for bit, and processes that
    are given the same gathered index and keys stay equal without talking to each other.
    """

    features: Tensor
    labels: Tensor
    centroids: Tensor
    steps: Tensor
    ready: Tensor

    def __init__(
        self,
        pictures: int,
        clusters: int,
        dim: int,
        *,
        momentum: float = 0.5,
        min_size: int = 20,
        refresh_every: int = 10,
        every_epoch: bool = False,
    ) -> None:
        """`momentum` is the weight of a new key; all centroids become means every `refresh_every` updates.

        With `every_epoch` labels come from k-means once an epoch instead.
        """
        super().__init__()
        _check_sizes(pictures, clusters, min_size)
        if not 0 < momentum <= 1:
            raise ValueError(f"the momentum of the cluster memory must lie in (0, 1], got {momentum}.")
        if refresh_every < 1:
            raise ValueError(f"centroids must be refreshed every 1 or more updates, got {refresh_every}.")
        self.momentum, self.min_size, self.refresh_every = momentum, min_size, refresh_every
        self.every_epoch, self.epoch = every_epoch, 1
        self.register_buffer("features", torch.zeros(pictures, dim))
        self.register_buffer("labels", torch.zeros(pictures, dtype=torch.long))
        self.register_buffer("centroids", torch.zeros(clusters, dim))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("ready", torch.zeros((), dtype=torch.bool))

    @torch.no_grad()
    def initialise(self, features: Rows, seed: int) -> None:
        """Clusters the features of all training pictures, in the order of their indices, by k-means.

        Threads may round differently: with several processes, one initialises and sends its buffers.
        """
        if features.shape != self.features.shape:
            wanted, got = list(self.features.shape), list(features.shape)
            raise ValueError(f"the cluster memory holds features of shape {wanted}, got {got}.")
        self.ready.fill_(False)
        self.features.copy_(F.normalize(features.float(), dim=1))
        self.cluster(seed)
        self.ready.fill_(True)

    def cluster(self, seed: int) -> None:
        """Labels and centroids of the features as they are, by k-means."""
        labels = k_means(self.features, len(self.centroids), seed)
        generator = torch.Generator().manual_seed(fold(seed, "clusters"))
        filled = fill_empty(self.features, labels, self.centroids, self.min_size, generator)
        self.labels.copy_(filled.labels)
        self.centroids.copy_(cluster_means(self.features, self.labels, self.centroids))

    def labels_of(self, index: Index) -> Labels:
        """The pseudo labels of a batch as a copy; read them before the update."""
        self._require_ready()
        return self.labels[index]

    @torch.no_grad()
    def update(self, index: Index, keys: Embeddings) -> None:
        """Moves a batch towards its keys, labels it anew, refreshes centroids when due, repairs clusters."""
        self._require_ready()
        self.epoch = max(len(self.labels) // len(index), 1)
        last = last_places(index)
        index, keys = index[last], keys.detach()[last].to(self.features)
        rows = follow_keys(self.features[index], keys, self.momentum)
        self.features[index] = rows
        self.steps += 1
        if self.every_epoch:
            return

        self.labels[index] = most_similar(rows, self.centroids)
        if int(self.steps) % self.refresh_every == 0:
            self.centroids.copy_(cluster_means(self.features, self.labels, self.centroids))
        generator = torch.Generator().manual_seed(fold(int(self.steps), "clusters"))
        mended = repair(self.features, self.labels, self.centroids, self.min_size, generator)
        self.labels.copy_(mended.labels)
        self.centroids.copy_(mended.centroids)

    @property
    def is_due(self) -> bool:
        """Whether an epoch is over whose features are to be clustered anew."""
        return self.every_epoch and int(self.steps) % self.epoch == 0

    def class_weights(self) -> Float[Tensor, "C"]:
        """w_c ~ (n_c + 1e-5)^(-1/2), summing to 1: large clusters must not swallow the others.

        Made for a weighted mean, which divides by the weights of the batch; a plain mean over the batch would
        shrink the loss by about the number of clusters.
        """
        self._require_ready()
        sizes = cluster_sizes(self.labels, len(self.centroids))
        weights = (sizes.to(self.centroids) + 1e-5).rsqrt()
        return weights / weights.sum()

    def _require_ready(self) -> None:
        if not self.ready:
            raise RuntimeError(
                "the cluster memory has no labels yet. Call initialise() with the features of all training "
                "pictures, or load a checkpoint."
            )


def _similarity(rows: Tensor, directions: Tensor) -> Tensor:
    with torch.autocast(rows.device.type, enabled=False):  # half precision would change labels
        return rows @ directions.T


def _main_component(points: Tensor) -> Tensor:
    """Where each point lies along the direction of largest spread, by a few power iterations."""
    centred = points - points.mean(dim=0)
    direction = centred[centred.norm(dim=1).argmax()]  # [D]
    with torch.autocast(points.device.type, enabled=False):
        for _ in range(5):
            direction = F.normalize(centred.T @ (centred @ direction), dim=0)
        return centred @ direction


def _check_sizes(pictures: int, clusters: int, min_size: int) -> None:
    if clusters < 2:
        raise ValueError(f"mixup.clusters.count must be at least 2, got {clusters}.")
    if min_size < 1:
        raise ValueError(f"the smallest cluster must have at least 1 picture, got {min_size}.")
    if clusters > pictures:
        raise ValueError(
            f"mixup.clusters.count is {clusters}, but there are only {pictures} training pictures. "
            "Lower --mixup.clusters.count."
        )
    if clusters * min_size > pictures:
        raise ValueError(
            f"mixup.clusters.count is {clusters} with at least {min_size} pictures each, which takes "
            f"{clusters * min_size}, but there are only {pictures} training pictures. "
            "Lower --mixup.clusters.count or --mixup.clusters.min_size, or take more pictures."
        )
