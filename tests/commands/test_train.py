"""samix train: names, folders, seeds, files."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch
import yaml
from PIL import Image


def test_value_default_folder_and_last_line(call, small, tmp_path):
    out = call("train", "demo/cutmix", *small)
    folder = tmp_path / "runs" / "demo" / "cutmix" / "0"
    summary = json.loads((folder / "summary.json").read_text())
    assert out.splitlines()[-1].startswith(f"demo/cutmix seed 0: top-1 {summary['top1']:.2f} %")
    assert "runs/demo/cutmix/0" in out.splitlines()[-1]
    assert "epoch 2/2" in out
    assert summary["command"].startswith("samix train demo/cutmix --epochs 2")
    assert list((folder / "samples").glob("*.png"))


def test_value_seeds_get_folders_of_their_own(call, small, tmp_path):
    out = call("train", "demo", "--mixup", "mixup", "--seeds", 3, 4, "--out", "here", "--quiet", *small)
    assert out.count("top-1") == 2
    for seed in (3, 4):
        config = yaml.safe_load((tmp_path / "here" / str(seed) / "config.yaml").read_text())
        assert config["seed"] == seed and config["mixup"]["name"] == "mixup"


def test_value_the_same_command_again_goes_on(call, small, tmp_path):
    words = ["train", "demo/plain", "--out", "run", "--quiet", *small]
    call(*words)
    before = (tmp_path / "run" / "last.ckpt").read_bytes()
    call(*words)
    assert (tmp_path / "run" / "last.ckpt").read_bytes() == before


def test_error_a_file_where_the_run_folder_should_be(fail, small, tmp_path):
    (tmp_path / "run").write_text("mine")
    assert "run is a file; a run needs a folder" in fail("train", "demo/plain", *small, "--out", "run")
    assert (tmp_path / "run").read_text() == "mine"


def test_error_one_class_only(fail, small, tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for n in range(24):
        Image.new("RGB", (16, 16), (n, 0, 0)).save(folder / f"{n}.png")
    words = ["--data.name", "pictures", "--data.root", folder]
    assert "one class only, 'picture'" in fail("train", "demo/plain", *small, *words)


def test_error_another_recipe_in_the_same_folder(call, fail, small):
    call("train", "demo/plain", "--out", "run", "--quiet", *small)
    text = fail("train", "demo/plain", "--out", "run", "--quiet", *small, "--optimizer.lr", "0.2")
    assert "optimizer.lr: there 0.1, here 0.2" in text


def test_value_the_config_of_a_run_keeps_the_recipes_name(call, trained, tmp_path):
    call("train", "--config", trained / "config.yaml", "--out", "twin", "--quiet", "--epochs", 1)
    names = [json.loads((folder / "run.json").read_text())["name"] for folder in (trained, tmp_path / "twin")]
    assert names[0] == names[1] and "/" in names[0]


def test_value_help_of_a_file_shows_its_values(call, trained):
    out = call("train", "--config", trained / "config.yaml", "--help")
    name = json.loads((trained / "run.json").read_text())["name"]
    assert f"fields of {name}, with their values there" in out


def test_value_the_config_of_a_run_trains_again(call, trained, tmp_path):
    shutil.copy(trained / "config.yaml", tmp_path / "again.yaml")
    call("train", "--config", "again.yaml", "--quiet")
    folder = tmp_path / "runs" / "again" / "samix" / "0"
    assert (folder / "config.yaml").read_text() == (trained / "config.yaml").read_text()
    mine, theirs = (torch.load(path / "last.ckpt", weights_only=True)["model"] for path in (folder, trained))
    assert all(torch.equal(mine[name], value) for name, value in theirs.items())


def test_value_fields_override_a_file(call, trained):
    call("train", "--config", trained / "config.yaml", "--epochs", 1, "--out", "short", "--quiet")
    with open("short/metrics.csv") as handle:
        assert len(list(csv.DictReader(handle))) == 1


def test_value_metrics_have_the_mixers_signs_and_all_heads(trained):
    with (trained / "metrics.csv").open() as handle:
        row = next(csv.DictReader(handle))
    for name in ("gamma", "gap", "deviation", "local", "globally", "top1_one_q", "top1_mix_k", "top1_one_k"):
        assert float(row[name]) == float(row[name]), name


def test_error_mixup_beside_a_file(fail, trained):
    assert "--mixup goes with a recipe's name" in fail(
        "train", "--config", trained / "config.yaml", "--mixup", "cutmix"
    )


@pytest.mark.parametrize("name", ["mixup", "cutmix", "automix"])
def test_value_mixups_by_name(name, call, small, tmp_path):
    call("train", "demo", "--mixup", name, "--out", "run", "--quiet", *small, "--epochs", 1)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["mixup"] == name


def test_value_own_folder_of_pictures(call, small, tmp_path):
    generator = np.random.default_rng(0)
    for part, count in (("train", 8), ("val", 2)):
        for name in ("cat", "dog"):
            (tmp_path / "mine" / part / name).mkdir(parents=True)
            for number in range(count):
                picture = generator.integers(0, 256, (20, 24, 3), dtype=np.uint8)
                Image.fromarray(picture).save(tmp_path / "mine" / part / name / f"{number}.png")
    words = ["--data.name", "folder", "--data.root", "mine", "--data.view", "resized-crop"]
    words += ["--data.train_pictures", "null", "--data.test_pictures", "null"]
    call("train", "demo/samix", "--out", "run", "--quiet", *small, *words)
    assert not (tmp_path / "run" / "retention.csv").exists()
    assert (tmp_path / "run" / "summary.json").exists()


def test_value_fields_may_stand_before_other_options(call, small, tmp_path):
    call("train", "demo/plain", *small, "--quiet", "--out", "run")
    call("train", "demo/plain", "--quiet", "--out", "run", *small)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["epochs"] == 2


def test_error_a_file_of_the_other_kind(fail, trained):
    config = trained / "config.yaml"
    assert f"is for `samix train --config {config}`" in fail("pretrain", "--config", config)
