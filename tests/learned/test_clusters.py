"""The cluster memory against slow loops, the official code's numbers and rules that must always hold."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from samix.learned.clusters import (
    ClusterMemory,
    cluster_means,
    fill_empty,
    follow_keys,
    k_means,
    last_places,
    merge_small,
    most_similar,
    repair,
    split_in_two,
)


def units(count: int, dim: int = 4, seed: int = 0) -> Tensor:
    return F.normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)), dim=1)


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_memory(pictures: int = 60, clusters: int = 5, **options) -> ClusterMemory:
    memory = ClusterMemory(pictures, clusters, 4, **{"min_size": 4} | options)
    memory.initialise(units(pictures), seed=0)
    return memory


def feed(memory: ClusterMemory, steps: int, seed: int = 1, batch: int = 12) -> None:
    generator = source(seed)
    for _ in range(steps):
        index = torch.randint(0, len(memory.labels), (batch,), generator=generator)
        memory.update(index, torch.randn(batch, 4, generator=generator))


def sizes(memory: ClusterMemory) -> list[int]:
    return [int((memory.labels == cluster).sum()) for cluster in range(len(memory.centroids))]


def same(one: ClusterMemory, other: ClusterMemory) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.buffers(), other.buffers(), strict=True))


def inertia(points: Tensor, second: Tensor) -> float:
    halves = (points[~second], points[second])
    return sum(float((half - half.mean(dim=0)).square().sum()) for half in halves)


# Slow loops: one picture and one cluster at a time.


def slow_follow(row: Tensor, key: Tensor, momentum: float) -> Tensor:
    moved = (1 - momentum) * row + momentum * key / key.norm()
    return moved / moved.norm()


def slow_most_similar(row: Tensor, centroids: dict[int, Tensor]) -> int:
    products = {cluster: float((row * centroid).sum()) for cluster, centroid in centroids.items()}
    return max(products, key=lambda cluster: products[cluster])


def slow_means(features: Tensor, labels: list[int], centroids: Tensor) -> Tensor:
    means = centroids.clone()
    for cluster in range(len(centroids)):
        members = [row for row, label in zip(features, labels, strict=True) if label == cluster]
        if members:
            means[cluster] = sum(members) / len(members)
    return means


def slow_merge(features: Tensor, labels: list[int], centroids: Tensor, min_size: int) -> list[int]:
    big = {c: centroids[c] for c in range(len(centroids)) if labels.count(c) >= min_size}
    return [
        label if label in big else slow_most_similar(row, big)
        for row, label in zip(features, labels, strict=True)
    ]


def slow_fill(features: Tensor, labels: list[int], centroids: Tensor, least: int, generator: torch.Generator):
    labels, centroids = list(labels), centroids.clone()
    for cluster in range(len(centroids)):
        if cluster not in labels:
            counts = [labels.count(c) for c in range(len(centroids))]
            largest = counts.index(max(counts))
            members = [row for row, label in enumerate(labels) if label == largest]
            second = split_in_two(features[members], least, generator).tolist()
            for row, moves in zip(members, second, strict=True):
                labels[row] = cluster if moves else largest
            both = slow_means(features, labels, centroids)
            centroids[largest], centroids[cluster] = both[largest], both[cluster]
    return labels, centroids


def slow_update(memory: ClusterMemory, index: list[int], keys: Tensor):
    """One update of a copy of the memory's state: features, labels, centroids."""
    features, labels, centroids = memory.features.clone(), memory.labels.tolist(), memory.centroids.clone()
    for row, key in dict(zip(index, keys, strict=True)).items():  # a dict keeps the last
        features[row] = slow_follow(memory.features[row], key, memory.momentum)
        labels[row] = slow_most_similar(features[row], dict(enumerate(centroids)))
    if (int(memory.steps) + 1) % memory.refresh_every == 0:
        centroids = slow_means(features, labels, centroids)
    return features, slow_merge(features, labels, centroids, memory.min_size), centroids


# The official code's numbers.


@pytest.fixture
def recorded(golden) -> dict[str, Tensor]:
    return golden("f_odc_memory")


def test_value_golden_start_and_update(recorded):
    before, after = ({k.split("/")[1]: v for k, v in recorded.items() if k[0] == step} for step in "12")
    features, labels = F.normalize(recorded["feat"], dim=1), recorded["label"]
    torch.testing.assert_close(features, before["feature_bank"])
    centroids = cluster_means(features, labels, torch.zeros(6, 8))
    torch.testing.assert_close(centroids, before["centroids"])

    index = after["ind"]
    rows = follow_keys(features[index], after["feature"], float(recorded["momentum"]))
    torch.testing.assert_close(rows, after["feature_bank"][index])
    assert torch.equal(most_similar(rows, centroids), after["label_bank"][index])


def test_value_golden_repair(recorded):
    """All agrees but the 2-means split, whose start is ours; it must be about as tight."""
    features, labels, centroids = (
        recorded[f"2_update/{name}"] for name in ("feature_bank", "label_bank", "centroids")
    )
    expected, means = recorded["3_small/label_bank"], recorded["3_small/centroids"]
    first, second = recorded["3_small/split0/sub1_ind"], recorded["3_small/split0/sub2_ind"]

    merged = merge_small(features, labels, centroids, int(recorded["min_cluster"]))
    assert torch.equal(merged, expected.where(expected != 1, 0))
    assert (merged == 0).nonzero()[:, 0].tolist() == sorted([*first.tolist(), *second.tolist()])

    mended = repair(features, labels, centroids, int(recorded["min_cluster"]), source())
    others = expected > 1
    assert torch.equal(mended.labels[others], expected[others]) and set(mended.labels[~others].tolist()) == {
        0,
        1,
    }
    assert torch.equal(mended.centroids[2:], means[2:])
    points = features[~others]
    ours, theirs = inertia(points, mended.labels[~others] == 1), inertia(points, expected[~others] == 1)
    assert ours < 1.05 * theirs


def test_value_golden_refresh(recorded):
    state = [recorded[f"3_small/{name}"] for name in ("feature_bank", "label_bank", "centroids")]
    torch.testing.assert_close(cluster_means(*state), recorded["4_centroids/centroids"])


# Values.


@given(st.integers(0, 1000), st.sampled_from([0.1, 0.5, 1.0]), st.integers(1, 3), st.integers(1, 30))
def test_value_update(seed, momentum, refresh_every, batch):
    memory = make_memory(momentum=momentum, refresh_every=refresh_every)
    feed(memory, steps=2, seed=seed, batch=batch)
    index = torch.randint(0, 60, (batch,), generator=source(seed))
    keys = 3 * torch.randn(batch, 4, generator=source(seed))
    features, labels, centroids = slow_update(memory, index.tolist(), keys)
    memory.update(index, keys)
    torch.testing.assert_close(memory.features, features)
    if len(set(labels)) == 5:  # otherwise a split follows
        assert memory.labels.tolist() == labels
        torch.testing.assert_close(memory.centroids, centroids)


@given(st.integers(0, 1000), st.integers(1, 7), st.integers(1, 8))
def test_value_repair(seed, used, min_size):
    features, centroids = units(60, seed=seed), units(7, seed=seed + 1)
    skewed = torch.rand(60, generator=source(seed)).square()
    labels = (used * skewed).long()
    merged = slow_merge(features, labels.tolist(), centroids, min_size)
    expected, means = slow_fill(features, merged, centroids, min_size, source(seed))
    before = labels.clone(), centroids.clone()
    mended = repair(features, labels, centroids, min_size, source(seed))
    assert mended.labels.tolist() == expected
    torch.testing.assert_close(mended.centroids, means)
    assert torch.equal(labels, before[0]) and torch.equal(centroids, before[1])


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 20))
def test_value_means(seed, used, chunk):
    features, centroids = units(40, seed=seed), units(6, seed=seed + 1)
    labels = torch.randint(0, used, (40,), generator=source(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("samix.learned.clusters.CHUNK", chunk)
        means = cluster_means(features, labels, centroids)
        nearest = most_similar(features, centroids)
    torch.testing.assert_close(means, slow_means(features, labels.tolist(), centroids))
    assert nearest.tolist() == [slow_most_similar(row, dict(enumerate(centroids))) for row in features]


def test_value_means_do_not_depend_on_the_order_of_rows():
    features, labels, order = units(5000), torch.arange(5000) % 3, torch.randperm(5000)
    means = cluster_means(features, labels, torch.zeros(3, 4))
    assert torch.equal(means, cluster_means(features[order], labels[order], torch.zeros(3, 4)))


def test_value_of_equal_indices_the_last_counts():
    for dtype in (torch.int32, torch.int64):
        index = torch.tensor([7, 3, 7, 7, 5, 3], dtype=dtype)
        assert sorted(last_places(index).tolist()) == [3, 4, 5]
    once, twice = make_memory(), make_memory()
    keys = units(3, seed=5)
    twice.update(torch.tensor([8, 2, 8]), keys)
    once.update(torch.tensor([2, 8]), keys[1:])
    assert same(once, twice)


def test_value_keys_without_direction_change_nothing():
    rows = units(4)
    keys = torch.stack([-rows[0], torch.zeros(4), torch.full((4,), float("nan")), torch.full((4,), 1e30)])
    keys[3, 0] = float("inf")
    torch.testing.assert_close(follow_keys(rows, keys, 0.5), rows)


def test_value_centroids_refresh_when_due():
    memory = make_memory(min_size=1, refresh_every=3)
    start = memory.centroids.clone()
    for step in range(1, 7):
        index = (memory.labels == memory.labels[0]).nonzero()[:1, 0]
        memory.update(index, memory.centroids[memory.labels[index]])  # moves within its cluster
        if step % 3:
            assert torch.equal(memory.centroids, start)
        else:
            start = slow_means(memory.features, memory.labels.tolist(), start)
            torch.testing.assert_close(memory.centroids, start)
            start = memory.centroids.clone()
    assert int(memory.steps) == 6


def test_value_start_finds_groups():
    groups = torch.arange(90) % 3
    features = 5 * F.normalize(torch.eye(4)[groups] + 0.1 * torch.randn(90, 4), dim=1)
    memory = ClusterMemory(90, 3, 4)
    memory.initialise(features, seed=1)
    pairs = set(zip(groups.tolist(), memory.labels.tolist(), strict=True))
    assert len(pairs) == 3 and memory.ready and int(memory.steps) == 0
    torch.testing.assert_close(memory.features, features / 5)
    expected = slow_means(memory.features, memory.labels.tolist(), memory.centroids)
    torch.testing.assert_close(memory.centroids, expected)
    assert (memory.centroids.norm(dim=1) < 1).all()


def test_value_start_depends_on_its_seed_alone():
    first, second, third = (ClusterMemory(300, 20, 4, min_size=1) for _ in range(3))
    for memory, seed in ((first, 0), (second, 0), (third, 1)):
        torch.rand(7)
        memory.initialise(units(300), seed)
    assert same(first, second) and not torch.equal(first.labels, third.labels)
    assert torch.equal(k_means(first.features, 20, 0), first.labels)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("distinct", [1, 2, 4])
def test_value_start_leaves_no_cluster_empty(distinct):
    memory = ClusterMemory(48, 6, 4, min_size=4)
    memory.initialise(units(distinct).repeat(48 // distinct, 1), seed=0)
    assert min(sizes(memory)) >= 4


def test_value_labels_are_read_before_the_update():
    memory = make_memory()
    index = torch.arange(10)
    expected = memory.labels[:10].tolist()
    before = memory.labels_of(index)
    memory.update(index, -memory.features[:10] + 0.01)
    assert before.tolist() == expected != memory.labels_of(index).tolist()


def test_value_class_weights():
    memory = make_memory(pictures=50, clusters=5, min_size=1)
    memory.labels.copy_(torch.tensor([0] * 25 + [1] * 16 + [2] * 9))
    raw = [(n + 1e-5) ** -0.5 for n in (25, 16, 9, 0, 0)]
    torch.testing.assert_close(memory.class_weights(), torch.tensor([w / sum(raw) for w in raw]))


def test_value_half_precision_keys_under_autocast():
    memory, other = make_memory(), make_memory()
    index, keys = torch.arange(20), units(20, seed=3).bfloat16()
    memory.update(index, keys.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        other.update(index, keys)
    assert same(memory, other) and memory.features.dtype == torch.float32


# Splits.


@given(st.integers(2, 20), st.integers(2, 20), st.integers(0, 1000))
def test_value_split_finds_two_groups(first, second, seed):
    points = F.normalize(
        torch.eye(4)[[0] * first + [1] * second] + 0.05 * units(first + second, seed=seed), dim=1
    )
    split = split_in_two(points, 1, source(seed))
    assert split.unique_consecutive().numel() == 2 and int(split[0] != split[first]) == 1
    assert int((split == split[0]).sum()) == first


@given(st.integers(4, 40), st.integers(0, 1000))
def test_value_split_is_stable(count, seed):
    """After convergence each point is nearer to the mean of its own half."""
    points = units(count, seed=seed)
    split = split_in_two(points, 1, source(seed), steps=100)
    near, far = points[split].mean(dim=0), points[~split].mean(dim=0)
    nearer = (points - near).norm(dim=1) < (points - far).norm(dim=1)
    assert torch.equal(nearer, split)


def test_value_split_is_as_tight_as_that_of_scikit_learn():
    from sklearn.cluster import KMeans

    for seed in range(10):
        points = F.normalize(torch.randn(60, 16) + torch.randn(16), dim=1)
        best = KMeans(2, n_init=10, random_state=seed).fit(points.numpy()).inertia_
        assert inertia(points, split_in_two(points, 1, source(seed))) < 1.05 * best


def test_value_split_moves_the_border_for_a_half_that_is_too_small():
    angle = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 2.0])
    points = torch.stack([angle.cos(), angle.sin()], dim=1)
    for least, alone in ((1, {6}), (2, {5, 6}), (3, {4, 5, 6}), (9, {4, 5, 6})):
        split = split_in_two(points, least, source())
        halves = set(split.nonzero()[:, 0].tolist()), set((~split).nonzero()[:, 0].tolist())
        assert alone in halves


@pytest.mark.parametrize("value", [0.5, float("nan")])
def test_value_split_halves_equal_points_at_random(value):
    points = torch.full((9, 4), value)
    splits = {tuple(split_in_two(points, 1, source(seed)).tolist()) for seed in range(8)}
    assert len(splits) > 4 and all(sum(split) == 4 for split in splits)


# Rules that always hold.


@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 1000), st.floats(0, 1))
def test_invariant_state(clusters, min_size, seed, collapse):
    """Also where all keys are nearly one: labels in range, unit features, no cluster too small."""
    memory = make_memory(pictures=2 * clusters * min_size + 3, clusters=clusters, min_size=min_size)
    generator = source(seed)
    for _ in range(4):
        index = torch.randint(0, len(memory.labels), (9,), generator=generator)
        memory.update(index, units(1, seed=seed) + (1 - collapse) * torch.randn(9, 4, generator=generator))
        torch.testing.assert_close(memory.features.norm(dim=1), torch.ones(len(memory.features)))
        assert int(memory.labels.min()) >= 0 and int(memory.labels.max()) < clusters
        assert min(sizes(memory)) >= min_size
        assert memory.centroids.isfinite().all()


@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 1000))
def test_invariant_no_cluster_is_empty_even_where_pictures_are_few(clusters, min_size, seed):
    features, labels = units(clusters * min_size, seed=seed), torch.zeros(clusters * min_size).long()
    mended = repair(features, labels, units(clusters), min_size, source(seed))
    assert set(mended.labels.tolist()) == set(range(clusters))


def test_invariant_nothing_to_repair_costs_no_copy():
    features, labels, centroids = units(20), torch.arange(20) % 4, units(4)
    mended = repair(features, labels, centroids, 5, source())
    assert mended.labels is labels and mended.centroids is centroids
    assert fill_empty(features, labels, centroids, 5, source()).labels is labels


def test_invariant_a_resumed_memory_continues_bit_for_bit():
    memory = make_memory(min_size=8, refresh_every=3)
    feed(memory, steps=5)
    other = ClusterMemory(60, 5, 4, min_size=8, refresh_every=3)
    other.load_state_dict({name: value.clone() for name, value in memory.state_dict().items()})
    feed(memory, steps=7, seed=2)
    torch.manual_seed(99)
    feed(other, steps=7, seed=2)
    assert same(memory, other) and int(other.steps) == 12


def test_invariant_equal_memories_stay_equal_and_leave_the_random_state_alone():
    """Processes of a distributed run have random states of their own."""
    one, other = make_memory(min_size=8), make_memory(min_size=8)
    state = torch.get_rng_state()
    feed(one, steps=12)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    feed(other, steps=12)
    assert same(one, other)


def test_gradient_stops_at_the_memory():
    memory, keys = make_memory(), units(3).requires_grad_()
    memory.update(torch.arange(3), keys)
    assert not memory.features.requires_grad and not memory.class_weights().requires_grad
    assert not list(memory.parameters())
    assert set(memory.state_dict()) == {"features", "labels", "centroids", "steps", "ready"}


# Errors.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"pictures": 100, "clusters": 200},
            "clusters.count is 200, but there are only 100 training pictures. Lower --mix",
        ),
        (
            {"pictures": 100, "clusters": 6},
            "6 with at least 20 pictures each, which takes 120, .* only 100 .* Lower",
        ),
        ({"pictures": 100, "clusters": 1}, "clusters.count must be at least 2, got 1"),
        ({"pictures": 100, "clusters": 2, "min_size": 0}, "at least 1 picture, got 0"),
        ({"pictures": 100, "clusters": 2, "momentum": 0.0}, r"lie in \(0, 1\], got 0.0"),
        ({"pictures": 100, "clusters": 2, "refresh_every": 0}, "every 1 or more updates, got 0"),
    ],
)
def test_error_impossible_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClusterMemory(dim=4, **arguments)
    ClusterMemory(pictures=100, clusters=5, dim=4)


def test_error_never_initialised():
    memory, index = ClusterMemory(60, 3, 4), torch.arange(3)
    for call in (
        lambda: memory.labels_of(index),
        lambda: memory.update(index, units(3)),
        memory.class_weights,
    ):
        with pytest.raises(RuntimeError, match=r"no labels yet. Call initialise\(\)"):
            call()


def test_error_an_interrupted_start_is_no_start(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    memory = make_memory()
    monkeypatch.setattr("samix.learned.clusters.k_means", interrupt)
    with pytest.raises(KeyboardInterrupt):
        memory.initialise(units(60), seed=1)
    with pytest.raises(RuntimeError, match="no labels yet"):
        memory.labels_of(torch.arange(3))


def test_error_features_of_another_shape():
    with pytest.raises(ValueError, match=r"shape \[60, 4\], got \[59, 4\]"):
        ClusterMemory(60, 3, 4).initialise(units(59), seed=0)
