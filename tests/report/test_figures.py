"""Figures of mixed images: which picture stands where."""

import io

import numpy as np
import pytest

from samix.report.figures import (
    attention_figure,
    comparison_figure,
    draw_samples,
    inner_positions,
    pair_figure,
    same_pairs,
    sample_figure,
    spread_positions,
)
from samix.report.style import write_png
from samix.runs.samples import read_samples


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def tiles(figure):
    """Every tile of a figure by its place (left, top)."""
    images = figure.axes[0].images
    return {
        (round(x.get_extent()[0], 3), round(x.get_extent()[3], 3)): np.asarray(x.get_array()) for x in images
    }


@pytest.fixture
def learned(write_run):
    return read_samples(write_run())


@pytest.fixture
def made(write_run):
    return read_samples(write_run("demo/mixup", "mixup"))


def test_value_spread_keeps_both_ends():
    assert spread_positions(11, 3) == [0, 5, 10]
    assert spread_positions(2, 5) == [0, 1]
    assert spread_positions(5, 1) == [2]


def test_value_inner_leaves_out_pure_images():
    assert inner_positions(np.array([0, 0.25, 0.5, 1]), 5) == [1, 2]
    assert inner_positions(np.array([0.0, 1.0]), 5) == [0, 1]


def test_value_samples_show_pictures_and_masks_where_they_belong(made):
    figure = sample_figure(made, "my title", pairs=2)
    shown = tiles(figure)
    assert len(shown) == 2 * (2 + 3 + 3) + 1  # pairs x (first, partner, mixed, masks) and the colour key
    rows = sorted({top for _, top in shown})
    first_row = [shown[place] for place in sorted(shown) if place[1] == rows[0]]
    expected = [made.first[0], made.partner[0], *made.mixed[:, 0]]
    for tile, picture in zip(first_row, expected, strict=True):
        np.testing.assert_array_equal(tile, picture.transpose(1, 2, 0))
    masks = [shown[place] for place in sorted(shown) if place[1] == rows[1]]
    np.testing.assert_allclose([mask.mean() for mask in masks], [0, 0.5, 1])
    assert {"my title", "λ = 0.5", "mean 0.50", "first", "partner"} <= set(words(figure))


def test_value_plain_samples_show_the_pictures_alone(write_run):
    run = write_run("demo/plain", "plain")
    assert len(tiles(sample_figure(read_samples(run), "plain"))) == 3 * 2
    assert draw_samples(run).exists()


def test_invariant_all_tiles_lie_inside_the_figure(made, learned):
    both = {"mixup": made, "samix": learned}
    mixups = {label: label for label in both}
    for figure in (
        sample_figure(made, "t"),
        comparison_figure(both, mixups),
        attention_figure(learned, "t"),
    ):
        axes = figure.axes[0]
        width, height = axes.get_xlim()[1], axes.get_ylim()[0]
        for image in axes.images:
            left, right, bottom, top = image.get_extent()
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height


def test_value_comparison_has_one_row_per_method(made, learned):
    samples = {"mixup + clean": made, "samix": learned}
    figure = comparison_figure(samples, {"mixup + clean": "mixup", "samix": "samix"}, pairs=1)
    assert len(tiles(figure)) == 2 + 2 * (1 + 1) + 1  # pair, methods x (mixed, mask) at lam 0.5, colour key
    assert "samix" in words(figure)


def test_error_of_comparing_different_pairs(write_run, made):
    other = read_samples(write_run("demo/cutmix", "cutmix", pictures=1))
    assert not same_pairs(made, other)
    with pytest.raises(ValueError, match="same pairs.*cutmix"):
        comparison_figure({"mixup": made, "cutmix": other}, {"mixup": "mixup", "cutmix": "cutmix"})


def test_value_attention_writes_the_range_of_every_map(learned):
    content = learned.content.copy()
    content[0] = 0.25
    figure = attention_figure(learned._replace(content=content), "samix")
    assert len(tiles(figure)) == 3 * 3
    assert "0.25 – 0.25" in words(figure)
    write_png(figure, io.BytesIO(), dpi=30)


def test_error_of_attention_without_maps(made):
    with pytest.raises(ValueError, match="only learned policies"):
        attention_figure(made, "mixup")


def test_value_draw_samples_writes_into_the_run(write_run):
    run = write_run()
    path = draw_samples(run)
    assert path == run / "samples" / "mixed.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    (run / "samples.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"no samples\.npz"):
        draw_samples(run)


def test_value_one_pair_of_photographs(learned):
    figure = pair_figure(learned, "mine")
    placed = tiles(figure)
    assert {"mine", "first", "partner", "mask", "λ = 0.5"} <= set(words(figure))
    count = len(learned.lams)
    assert len(placed) == 2 + 2 * count + 1  # and the key
    columns = sorted({left for left, _ in placed})[1:]
    rows = sorted({top for _, top in placed})
    first = placed[sorted(placed)[0]]
    assert np.array_equal(first, learned.first[0].transpose(1, 2, 0))
    mixed = [placed[left, rows[0]] for left in columns if (left, rows[0]) in placed]
    masks = [placed[left, rows[1]] for left in columns if (left, rows[1]) in placed]
    assert len(mixed) == len(masks) == count
    for k in range(count):
        assert np.array_equal(mixed[k], learned.mixed[k, 0].transpose(1, 2, 0))
        assert np.array_equal(masks[k], learned.masks[k, 0, 0])
