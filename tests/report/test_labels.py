"""Names of points: near, in the frame, over nothing else."""

import numpy as np
import pytest

from samix.report.labels import GAP, Box, place_labels

FRAME = Box(0, 0, 600, 300)


@pytest.mark.parametrize(
    ("other", "overlaps"),
    [
        (Box(5, 5, 10, 10), True),
        (Box(10, 0, 5, 5), False),
        (Box(0, 10, 5, 5), False),
        (Box(2, 2, 1, 1), True),
    ],
)
def test_value_overlaps(other, overlaps):
    box = Box(0, 0, 10, 10)
    assert box.overlaps(other) == other.overlaps(box) == overlaps


def test_value_a_lonely_name_stands_right_of_its_point():
    assert place_labels([(100.0, 100.0)], [(40.0, 10.0)], FRAME) == [Box(100 + GAP, 95, 40, 10)]


def test_value_at_the_edge_it_stands_left():
    assert place_labels([(590.0, 100.0)], [(40.0, 10.0)], FRAME) == [Box(590 - GAP - 40, 95, 40, 10)]


def test_value_a_line_is_left_free_while_there_is_room():
    line = Box(0, 99, 600, 2)
    (box,) = place_labels([(100.0, 100.0)], [(40.0, 10.0)], FRAME, [line])
    assert not box.overlaps(line)
    (box,) = place_labels([(100.0, 100.0)], [(40.0, 10.0)], FRAME, [FRAME])
    assert box == Box(100 + GAP, 95, 40, 10)


def test_invariant_crowded_names_cover_neither_each_other_nor_points():
    rng = np.random.default_rng(0)
    points = [(float(x), float(y)) for x, y in rng.normal((300, 150), (60, 30), (20, 2))]
    boxes = place_labels(points, [(50.0, 10.0)] * 20, FRAME)
    for place, box in enumerate(boxes):
        assert box.within(FRAME)
        assert not any(box.overlaps(other) for other in boxes[:place])
        assert not any(box.overlaps(Box(x, y, 0.1, 0.1)) for x, y in points)
