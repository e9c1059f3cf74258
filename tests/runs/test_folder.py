import json

import numpy as np
import pytest

from samix.runs.folder import find_runs, read_run
from samix.runs.records import read_rows
from samix.runs.samples import read_samples


def test_value_of_a_finished_run(write_run):
    run = read_run(write_run("demo/cutmix", "cutmix", 3, top1=55.5))
    assert (run.recipe, run.mixup, run.seed) == ("demo/cutmix", "cutmix", 3)
    assert run.summary["top1"] == 55.5
    assert run.series("top1") == {2: 57.5, 4: 59.5}
    assert run.series("gamma") == {}


def test_an_unfinished_run_is_named_after_its_folder(write_run):
    run = read_run(write_run("demo/samix", finished=False))
    assert run.summary is None
    assert run.recipe == "demo/samix"


def test_an_unfinished_run_is_named_as_it_was_started(write_run):
    path = write_run("demo/samix", finished=False, folder="elsewhere/eta01")
    assert read_run(path).recipe == "elsewhere/eta01"
    (path / "run.json").write_text(json.dumps({"name": "demo/samix", "commit": "abc"}))
    assert read_run(path).recipe == "demo/samix"
    (path / "run.json").write_text('{"name": ')
    with pytest.raises(ValueError, match=r"run\.json is not readable JSON"):
        read_run(path)


def test_a_run_that_has_just_started_has_no_rows(write_run):
    path = write_run(finished=False)
    (path / "metrics.csv").unlink()
    assert read_run(path).rows == []


@pytest.mark.parametrize(
    "rest", ["3,0.", "3", "3,0.25"], ids=["in a number", "in a row", "before the line end"]
)
def test_a_cut_last_line_is_left_out(tmp_path, rest):
    path = tmp_path / "metrics.csv"
    path.write_text("epoch,loss,top1\n1,2.0,\n2,1.5,40\n" + rest)
    assert read_rows(path) == [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.5, "top1": 40}]


def test_an_empty_or_cut_header_gives_no_rows(tmp_path):
    path = tmp_path / "metrics.csv"
    for text in ("", "epoch,lo", "epoch,loss\n"):
        path.write_text(text)
        assert read_rows(path) == []


def test_error_of_a_broken_line_in_the_middle(tmp_path):
    path = tmp_path / "metrics.csv"
    for line in ("1,two", "1"):
        path.write_text(f"epoch,loss\n{line}\n2,1.5\n")
        with pytest.raises(ValueError, match=r"metrics\.csv, line 2"):
            read_rows(path)


def test_find_accepts_runs_and_folders_above_and_no_run_twice(write_run, tmp_path):
    paths = [write_run("demo/samix", seed=seed) for seed in (10, 9)]
    write_run("other/cutmix", "cutmix")
    found = find_runs([tmp_path / "runs" / "demo", paths[0]])
    assert [(run.recipe, run.seed) for run in found] == [("demo/samix", 9), ("demo/samix", 10)]
    assert len(find_runs([tmp_path])) == 3


def test_error_of_a_folder_without_runs(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no run in .*config\.yaml.*samix train"):
        find_runs([tmp_path])
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["", "- 1", "epochs: 3", "mixup: samix", "a: [1"])
def test_error_of_a_config_that_describes_no_run(write_run, text):
    path = write_run()
    (path / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"config\.yaml"):
        read_run(path)


@pytest.mark.parametrize("text", ['{"top1": ', "[1]"])
def test_error_of_a_broken_summary(write_run, text):
    path = write_run()
    (path / "summary.json").write_text(text)
    with pytest.raises(ValueError, match=r"summary\.json"):
        read_run(path)
    (path / "summary.json").write_text(json.dumps({}))
    assert read_run(path).recipe == "demo/samix"


def test_samples(write_run):
    learned, made = read_samples(write_run()), read_samples(write_run("demo/mixup", "mixup"))
    assert learned.mixed.shape == (3, 3, 3, 8, 8)
    assert learned.attention.shape == (3, 4, 4)
    assert made.content is None


def test_plain_samples_are_mixed_at_no_lam(write_run):
    plain = read_samples(write_run("demo/plain", "plain"))
    assert plain.first.shape == (3, 3, 8, 8)
    assert (len(plain.lams), plain.masks.shape, plain.mixed.shape) == (0, (0, 3, 1, 8, 8), (0, 3, 3, 8, 8))


def test_error_of_broken_samples(write_run):
    path = write_run()
    (path / "samples.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"samples\.npz"):
        read_samples(path)
    np.savez(path / "samples.npz", first=np.zeros(1))
    with pytest.raises(ValueError, match=r"samples\.npz.*partner"):
        read_samples(path)
    (path / "samples.npz").unlink()
    assert read_samples(path) is None
