import pytest

from samix.runs.folder import find_runs

TRACKER = "wandb_version: 1\nmixup:\n  value:\n    name: samix\n"


def write_config(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(text)


def test_what_lies_inside_a_run_is_no_run(write_run, tmp_path):
    path = write_run()
    write_config(path / "wandb" / "run-1" / "files", TRACKER)
    write_config(path / "old" / "0", (path / "config.yaml").read_text())
    for named in (tmp_path, path.parent, path):
        assert [run.path for run in find_runs([named])] == [path]


def test_other_files_of_that_name_are_skipped(write_run, tmp_path):
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
