"""Run folders as values, and which folders are runs."""

import json

import pytest

from samix.runs.folder import find_runs, read_run

TRACKER = "wandb_version: 1\nmixup:\n  value:\n    name: samix\n"


def write_config(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(text)


def test_value_of_a_finished_run(write_run):
    run = read_run(write_run("demo/cutmix", "cutmix", 3, top1=55.5))
    assert (run.recipe, run.mixup, run.seed) == ("demo/cutmix", "cutmix", 3)
    assert run.summary["top1"] == 55.5
    assert run.series("top1") == {2: 57.5, 4: 59.5}
    assert run.series("gamma") == {}


def test_value_an_unfinished_run_is_named_after_its_folder(write_run):
    run = read_run(write_run("demo/samix", finished=False))
    assert run.summary is None
    assert run.recipe == "demo/samix"


def test_value_an_unfinished_run_is_named_as_it_was_started(write_run):
    path = write_run("demo/samix", finished=False, folder="elsewhere/eta01")
    assert read_run(path).recipe == "elsewhere/eta01"
    (path / "run.json").write_text(json.dumps({"name": "demo/samix", "commit": "abc"}))
    assert read_run(path).recipe == "demo/samix"
    (path / "run.json").write_text('{"name": ')
    with pytest.raises(ValueError, match=r"run\.json is not readable JSON"):
        read_run(path)


def test_value_a_run_that_has_just_started_has_no_rows(write_run):
    path = write_run(finished=False)
    (path / "metrics.csv").unlink()
    assert read_run(path).rows == []


def test_value_find_accepts_runs_and_folders_above_and_no_run_twice(write_run, tmp_path):
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


def test_value_what_lies_inside_a_run_is_no_run(write_run, tmp_path):
    path = write_run()
    write_config(path / "wandb" / "run-1" / "files", TRACKER)
    write_config(path / "old" / "0", (path / "config.yaml").read_text())
    for named in (tmp_path, path.parent, path):
        assert [run.path for run in find_runs([named])] == [path]


def test_value_other_files_of_that_name_are_skipped(write_run, tmp_path):
    path = write_run()
    for folder, text in (("runs", TRACKER), ("runs/demo", "a: [1"), ("other", "")):
        write_config(tmp_path / folder, text)
    (tmp_path / "odd" / "config.yaml").mkdir(parents=True)
    assert [run.path for run in find_runs([tmp_path])] == [path]


def test_error_of_a_tree_with_other_files_alone(tmp_path):
    write_config(tmp_path / "other", TRACKER)
    with pytest.raises(FileNotFoundError, match=r"no run in .*no config\.yaml .*describes one"):
        find_runs([tmp_path])


def test_error_of_a_named_folder_that_is_no_run(write_run, tmp_path):
    write_run()
    write_config(tmp_path / "runs", TRACKER)
    with pytest.raises(ValueError, match=r"runs/config\.yaml does not describe a run"):
        find_runs([tmp_path / "runs"])
