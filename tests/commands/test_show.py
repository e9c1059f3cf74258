"""samix show: of a run, and of two pictures of any kind."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import samix
from samix.commands import show
from samix.commands.show import own_hints
from samix.core.pairing import Pairing
from samix.learned import adjust_mask


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


# ------------------------------------------------------------ two pictures and a Mixer


@pytest.fixture
def two(tmp_path):
    """Two pictures in the folder of the command."""
    write(tmp_path / "a.png", "RGB", size=(60, 40))
    write(tmp_path / "b.png", "RGB", size=(30, 50))
    return "--images", "a.png", "b.png"


def rows_of(monkeypatch) -> list:
    """What the figures of the command are drawn from."""
    drawn: list = []
    for name in ("pair_figure", "comparison_figure"):
        original = getattr(show, name)

        def draw(rows, *words, original=original, **options):
            drawn.append(rows)
            return original(rows, *words, **options)

        monkeypatch.setattr(show, name, draw)
    return drawn


def test_value_two_pictures_as_a_run_mixes_them(call, finished, two, tmp_path, monkeypatch):
    drawn = rows_of(monkeypatch)
    assert call("show", finished, *two, "--size", 48).strip() == "mixed.png"
    (samples,) = drawn
    assert samples.mixed.shape == (5, 1, 3, 48, 48)
    np.testing.assert_allclose(samples.masks.mean(axis=(1, 2, 3, 4)), show.MIXER_LAMS, atol=1e-3)
    assert samples.masks.std(axis=(1, 2, 3, 4)).min() > 0.01  # a Mixer with a will
    # The run's own rule: its Mixer's masks scaled, not shifted.
    painter = samix.load_mixer(finished).painter
    x = torch.from_numpy(np.concatenate([samples.first, samples.partner])) / 255
    pairing = Pairing(torch.tensor([0.2]), torch.tensor([1, 0]))
    expected = adjust_mask(painter(x, pairing, x.shape[-2:]), pairing.lam)[0]
    np.testing.assert_allclose(samples.masks[0, 0], expected, atol=1e-5)
    blend = expected * x[0] + (1 - expected) * x[1]
    assert np.abs(samples.mixed[0, 0] - 255 * blend.numpy()).max() <= 1
    with Image.open(tmp_path / "mixed.png") as picture:
        assert min(picture.size) > 400


def test_value_a_mixer_as_samix_p_shifts_its_masks(call, finished, two, monkeypatch):
    drawn = rows_of(monkeypatch)
    call("show", finished, *two, "--size", 32)
    for source in (finished, finished / "mixer.safetensors"):
        call("show", *two, "--mixer", source, "--size", 32)
    own, frozen, same = (samples.masks for samples in drawn)
    assert np.array_equal(frozen, same) and not np.allclose(own, frozen, atol=1e-3)


def test_value_a_mixer_beside_hand_made_policies(call, finished, two, monkeypatch):
    drawn = rows_of(monkeypatch)
    call("show", finished, *two, "--size", 32, "--mixups", "cutmix", "puzzlemix")
    assert list(drawn[0]) == ["tiny/samix", "cutmix", "puzzlemix"]


def test_error_a_run_without_a_mixer(fail, write_run, two):
    said = fail("show", write_run("demo/cutmix", "cutmix", settings={"data": {"size": 8}}), *two)
    assert "learns no masks: its mixup is 'cutmix'" in said
    assert "unknown Mixer 'nowhere'" in fail("show", *two, "--mixer", "nowhere")


def test_error_what_goes_with_pictures_only(fail, finished):
    assert "--mixer goes with --images" in fail("show", finished, "--mixer", finished)
    assert "name a run folder or --images A B, or both" in fail("show")
