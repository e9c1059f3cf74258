"""Colours, and how figures are written."""

import errno

import matplotlib
import pytest
from matplotlib.figure import Figure

from samix.report import style
from samix.report.style import colour, line_style, save_png, styled

PNG = b"\x89PNG\r\n\x1a\n"


def test_value_every_method_has_one_colour_and_variants_have_dashes():
    names = ("plain", "mixup", "cutmix", "automix", "samix")
    assert len({colour(name) for name in names}) == len(names)
    assert colour("fmix") == colour("fmix")
    assert colour("fmix") not in style.COLOURS.values()
    lines = [line_style("mixup", label) for label in ("mixup", "mixup + clean", "mixup (long)")]
    assert len({line["color"] for line in lines}) == 1
    assert len({line["linestyle"] for line in lines}) == 3


def test_invariant_style_changes_nothing_global():
    before = dict(matplotlib.rcParams)
    with styled():
        assert matplotlib.rcParams["axes.grid"]
    assert dict(matplotlib.rcParams) == before


def test_value_png_is_written_with_its_folder(tmp_path):
    path = save_png(Figure(figsize=(1, 1)), tmp_path / "deep" / "a.png", dpi=20)
    assert path.read_bytes().startswith(PNG)
    assert list(path.parent.iterdir()) == [path]


def test_error_while_writing_keeps_the_old_png(tmp_path, monkeypatch):
    path = save_png(Figure(figsize=(1, 1)), tmp_path / "a.png", dpi=20)
    before = path.read_bytes()

    def fill_disk(figure, target, dpi):
        target.write_bytes(PNG)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(style, "write_png", fill_disk)
    with pytest.raises(OSError, match="No space left"):
        save_png(Figure(figsize=(2, 2)), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
