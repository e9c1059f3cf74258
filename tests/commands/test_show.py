"""samix show: of a run, and of two pictures of any kind."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from samix.commands.show import own_hints


@pytest.fixture
def coarse_pictures() -> None:
    """Not here: these tests ask how large a picture is."""


def write(path, mode: str, size: tuple[int, int] = (40, 30)) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(noise).convert(mode).save(path)


def test_value_a_run(call, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "samples")
    out = call("show", "run").strip()
    with Image.open(tmp_path / out) as picture:
        assert picture.format == "PNG" and min(picture.size) > 200


@pytest.mark.parametrize(("first", "second"), [("RGB", "RGB"), ("L", "RGBA"), ("RGBA", "L")])
def test_value_two_pictures(first, second, call, tmp_path):
    write(tmp_path / "a.png", first)
    write(tmp_path / "b.png", second, size=(25, 50))
    out = call("show", "--images", "a.png", "b.png", "--size", 32, "--out", "mixed.png").strip()
    assert out == "mixed.png"
    with Image.open(tmp_path / "mixed.png") as picture:
        assert picture.format == "PNG" and min(picture.size) > 100


def test_error_a_picture_that_is_none(fail, tmp_path):
    write(tmp_path / "a.png", "RGB")
    (tmp_path / "b.png").write_text("no picture")
    said = fail("show", "--images", "a.png", "b.png")
    assert "cannot read the picture b.png: it is no picture in a known format" in said


def test_error_both_a_run_and_pictures(fail, trained):
    assert "one of them" in fail("show", trained, "--images", "a.png", "b.png")


def test_value_only_the_wanted_policies(call, tmp_path):
    write(tmp_path / "a.png", "RGB")
    write(tmp_path / "b.png", "RGB")
    sizes = []
    for names in (["mixup", "puzzlemix"], ["mixup", "puzzlemix", "fmix", "alignmix"]):
        call("show", "--images", "a.png", "b.png", "--size", 16, "--mixups", *names)
        with Image.open(tmp_path / "mixed.png") as picture:
            sizes.append(picture.size[1])
    assert sizes[1] > sizes[0]


def test_error_an_unknown_policy_gets_a_suggestion(fail, tmp_path):
    write(tmp_path / "a.png", "RGB")
    assert "unknown mixup 'puzlemix'" in fail("show", "--images", "a.png", "a.png", "--mixups", "puzlemix")


def test_value_the_teacher_prefers_the_nearer_picture():
    pictures = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    first, second = x = pictures / 255
    teacher = own_hints(pictures).teacher
    assert teacher(x).argmax(dim=1).tolist() == [0, 1]
    torch.testing.assert_close(teacher(x).diagonal(), torch.zeros(2))
    blends = torch.stack([weight * first + (1 - weight) * second for weight in (0.9, 0.6, 0.4, 0.1)])
    assert teacher(blends).argmax(dim=1).tolist() == [0, 0, 1, 1]
    assert (teacher(blends)[:, 0].diff() < 0).all()
