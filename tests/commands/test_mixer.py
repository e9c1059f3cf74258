"""samix mixer: pictures in, an exported Mixer out."""

import json

import pytest
import torch
from PIL import Image

import samix
from samix.commands.mixer import enough_epochs, fit_words, has_classes, take_mixup, value_of
from samix.recipes import find_recipe
from samix.runs.mixer_file import read_mixer_file

TINY = "--encoder.name small-resnet --encoder.width 4 --encoder.weights null --epochs 2 --batch_size 4"
TINY += " --data.size 16 --data.workers 0 --machine.accelerator cpu --quiet"


def write_pictures(folder, count):
    folder.mkdir(parents=True)
    for number in range(count):
        pixels = torch.randint(0, 256, (20, 24, 3), dtype=torch.uint8).numpy()
        Image.fromarray(pixels).save(folder / f"{number}.png")


@pytest.fixture
def pictures(tmp_path):
    torch.manual_seed(0)
    for name in ("cats", "dogs"):
        write_pictures(tmp_path / "labelled" / name, 6)
    write_pictures(tmp_path / "flat", 12)
    return tmp_path


def summary_of(run):
    return json.loads((run / "summary.json").read_text())


def test_value_class_folders_give_samix_with_labels(call, pictures):
    out = call("mixer", "--data.root", "labelled", *TINY.split()).splitlines()
    run = pictures / "runs" / "mixer" / "samix" / "0"
    assert out[0].startswith("mixer/samix seed 0: top-1")
    where, figures, use = out[1:]
    assert where.startswith("Mixer: runs/mixer/samix/0/export/mixer.safetensors (")
    assert (run / "samples" / "mixed.png").is_file() and "samples/mixed.png" in where
    assert figures.startswith("figures: evidence 0.") and "gap 0.000" in figures
    assert 'samix.load_mixer("runs/mixer/samix/0/export")' in use
    summary = summary_of(run)
    assert summary["command"].startswith("samix train mixer/samix --encoder.frozen 0")
    assert 0 < summary["mask"]["evidence"] < 1
    policy = samix.load_mixer(run / "export")
    mixed = samix.Mix(policy, classes=2).mixed(torch.rand(2, 3, 16, 16), torch.arange(2))
    assert mixed.mask.shape == (2, 1, 16, 16)
    assert read_mixer_file(run / "export" / "mixer.safetensors").mixer.balanced
    assert "evidence" in (run / "export" / "README.md").read_text()


@pytest.mark.parametrize("mixup", [None, "samix-c"])
def test_value_pictures_without_classes_need_no_labels(call, pictures, mixup):
    words = [] if mixup is None else ["--mixup", mixup]
    out = call("mixer", "--data.root", "flat", "--out", "mine", *words, *TINY.split(), "--method.queue", 8)
    assert f"ssl-mixer/moco-v2+{mixup or 'samix-i'} seed 0" in out
    summary = summary_of(pictures / "mine")
    assert summary["mixup"] == (mixup or "samix-i") and summary["train_pictures"] == 12
    assert 0 < summary["mask"]["evidence"] < 1
    assert samix.load_mixer(pictures / "mine" / "export").painter.size == 16


def test_value_the_same_command_again_trains_nothing(call, pictures):
    first = call("mixer", "--data.root", "labelled", "--out", "mine", *TINY.split())
    trained = (pictures / "mine" / "last.ckpt").stat().st_mtime_ns
    assert call("mixer", "--data.root", "labelled", "--out", "mine", *TINY.split()) == first
    assert (pictures / "mine" / "last.ckpt").stat().st_mtime_ns == trained


def test_value_where_labels_are(pictures):
    assert has_classes(pictures / "labelled")
    assert not has_classes(pictures / "flat")
    write_pictures(pictures / "flat" / "sub", 1)
    write_pictures(pictures / "flat" / "more", 1)
    assert not has_classes(pictures / "flat"), "pictures beside folders have no class"
    write_pictures(pictures / "one" / "album", 1)
    assert not has_classes(pictures / "one"), "one folder is no choice"
    write_pictures(pictures / "split" / "train" / "a", 1)
    assert has_classes(pictures / "split")


def test_value_words():
    words = ["--data.root", "a", "--data.root=b", "--mixup", "samix-c", "--quiet"]
    assert take_mixup(words) == ("samix-c", ["--data.root", "a", "--data.root=b", "--quiet"])
    assert take_mixup(["--mixup=samix", "--quiet"]) == ("samix", ["--quiet"])
    assert take_mixup(["--mixup.eta", "1"]) == (None, ["--mixup.eta", "1"])
    assert value_of(words, "data.root") == "b" and value_of(words, "epochs") is None


def test_value_few_pictures_are_seen_more_often():
    recipe = find_recipe("mixer/samix")[1]
    assert enough_epochs(recipe, 4744, 36) == recipe.epochs == 4
    assert enough_epochs(recipe, 360, 36) == 52
    assert enough_epochs(recipe, 12, 36) == 130  # of min_steps steps each


def test_value_fields_follow_from_network_and_pictures(pictures):
    assert fit_words("samix", ["--data.name", "caltech101"]) == []
    other = fit_words("samix", ["--encoder.name", "small-resnet", "--encoder.weights", "some.pt"])
    assert other == ["--encoder.frozen", "5"]
    words = fit_words("samix-c", ["--data.root", str(pictures / "flat"), "--encoder.weights", "null"])
    assert words[:4] == ["--encoder.frozen", "0", "--encoder.freeze_norm", "false"]
    assert words[-4:] == ["--mixup.clusters.count", "2", "--mixup.clusters.min_size", "5"]


def test_value_help(call):
    assert "samix mixer --data.root PICTURES" in call("mixer", "--help")


def test_error_words(fail, tmp_path):
    assert "name the pictures" in fail("mixer")
    assert "data.root nowhere is not there" in fail("mixer", "--data.root", "nowhere")
    (tmp_path / "file").write_text("no pack")
    assert "neither a folder nor a pack" in fail("mixer", "--data.root", "file")
    assert "unknown mixup of a Mixer 'samix-j'" in fail(
        "mixer", "--data.name", "digits", "--mixup", "samix-j"
    )
    assert "name the weights of resnet18" in fail(
        "mixer", "--data.name", "caltech101", "--encoder.name", "resnet18"
    )
