"""Plausible nonsense in the files of a run folder: one sentence that names the file, never anything else."""

import json
import os

import numpy as np
import pytest
import torch
import yaml
from rich.console import Console

from samix.commands.fields import from_yaml
from samix.report import find_runs, print_table, write_page
from samix.runs.checkpoint import load_checkpoint, restore
from samix.runs.folder import read_run
from samix.runs.samples import read_samples
from samix.runs.schema import MOST_BYTES, read_yaml

NONSENSE = {"list": [1], "group": {"a": 1}, "text": "x", "number": 1.5, "huge": 10**400, "true": True}
BOMB = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
MERGED = "b0: &b0 {x0: 1}\n" + "".join(
    f"b{n}: &b{n} {{<<: [*b{n - 1}, *b{n - 1}], x{n}: 1}}\n" for n in range(1, 60)
)


def report(folder, out) -> None:
    """All that `samix report` does."""
    runs = find_runs([folder])
    print_table(runs, Console(quiet=True))
    write_page(runs, out)


def accepts_or_explains(do, file: str) -> None:
    """Whatever is refused is refused with a sentence that names the file."""
    try:
        do()
    except (ValueError, FileNotFoundError) as error:
        assert file in str(error) and type(error) in (ValueError, FileNotFoundError), repr(error)


@pytest.fixture
def fast_page(monkeypatch):
    """Without pictures, which take the time and are read by `read_samples` in any case."""
    monkeypatch.setattr("samix.report.page.figure_html", lambda figure, alt, note: alt)


@pytest.mark.usefixtures("fast_page")
@pytest.mark.parametrize("value", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("file", ["summary.json", "run.json", "knn.json", "config.yaml"])
def test_invariant_a_value_of_another_kind_is_named(write_run, tmp_path, file, value):
    folder = write_run()
    start = {"name": "demo/samix", "command": "samix", "commit": "a", "train_pictures": 1}
    (folder / "run.json").write_text(json.dumps(start))
    (folder / "knn.json").write_text(json.dumps({"top1": 50.0, "top5": 90.0}))
    path = folder / file
    as_text = yaml.safe_dump if file.endswith("yaml") else json.dumps
    known = yaml.safe_load(path.read_text())
    for name in known:
        path.write_text(as_text(known | {name: value}))
        accepts_or_explains(lambda: report(folder, tmp_path / "page.html"), file)
    path.write_text(as_text(value))
    accepts_or_explains(lambda: report(folder, tmp_path / "page.html"), file)


def test_error_says_file_field_kind_and_value(write_run):
    folder = write_run(summary={"top1": [1, 2]})
    with pytest.raises(ValueError, match=r"summary\.json: top1 must be a number, got list of 2\."):
        read_run(folder)


@pytest.mark.usefixtures("fast_page")
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("metrics.csv", "loss,top1\n1,2\n"),
        ("metrics.csv", "epoch,loss\none,2\n"),
        ("metrics.csv", "epoch\n" + "1" * 200_000 + "\n"),
        ("metrics.csv", "epoch,loss\n,2\n"),
        ("retention.csv", "first,both\n1,2\n"),
        ("run.json", "[" * 100_000),
        ("config.yaml", "[" * 5_000),
        ("config.yaml", "mixup: {name: samix, mask: 5}\n"),
        ("config.yaml", "mixup: {name: samix}\nseed: null\n1: 2\n"),
        ("config.yaml", "mixup: &m {name: samix, self: *m}\n"),
        ("config.yaml", "mixup: {name: samix}\nepochs: " + "9" * 5_000),
    ],
)
def test_error_of_strange_texts(write_run, tmp_path, file, text):
    folder = write_run()
    (folder / file).write_text(text)
    with pytest.raises(ValueError, match=file.replace(".", r"\.")):
        report(folder, tmp_path / "page.html")


@pytest.mark.parametrize("text", [BOMB, MERGED], ids=["lists", "merged"])
@pytest.mark.parametrize("read", [read_yaml, from_yaml])
def test_error_aliases_that_grow_without_end(tmp_path, text, read):
    (tmp_path / "config.yaml").write_text("mixup: {name: samix}\n" + text)
    with pytest.raises(ValueError, match=r"config\.yaml is not readable YAML: it has more than 1"):
        read(tmp_path / "config.yaml")


def test_value_a_few_aliases_are_fine(tmp_path):
    (tmp_path / "a.yaml").write_text("a: &a [1, 2]\nb: *a\n")
    assert read_yaml(tmp_path / "a.yaml") == {"a": [1, 2], "b": [1, 2]}


def test_error_a_file_that_is_too_long(tmp_path):
    with (tmp_path / "config.yaml").open("wb") as handle:
        handle.truncate(MOST_BYTES + 1)
    with pytest.raises(ValueError, match=r"config\.yaml has \d+ bytes, and at most"):
        read_yaml(tmp_path / "config.yaml")


def test_error_a_pipe_is_no_file_of_a_run(tmp_path):
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(FileNotFoundError, match="config.yaml is not a file"):
        read_yaml(tmp_path / "config.yaml")


@pytest.mark.parametrize("name", ["first", "partner", "lams", "masks", "mixed", "content"])
@pytest.mark.parametrize("array", [np.zeros(5), np.array("text"), np.zeros((2, 3, 4, 4), np.complex64)])
def test_error_of_samples_that_do_not_fit(write_run, name, array):
    folder = write_run()
    with np.load(folder / "samples.npz") as found:
        arrays = dict(found)
    assert read_samples(folder) is not None
    np.savez(folder / "samples.npz", **arrays | {name: array})
    with pytest.raises(ValueError, match=r"samples\.npz does not hold mixed pictures"):
        read_samples(folder)


@pytest.mark.parametrize("value", [[1], "x", 1.5, -1, {1: 2}])
@pytest.mark.parametrize("name", ["step", "model", "optimizer", "recipe", "pictures"])
def test_error_of_checkpoints_of_other_kinds(tmp_path, name, value):
    state = {"step": 1, "model": {}, "optimizer": {}, "recipe": {"a": (1, 2)}}
    torch.save(state, tmp_path / "last.ckpt")
    assert load_checkpoint(tmp_path) == state
    torch.save(state | {name: value}, tmp_path / "last.ckpt")
    if isinstance(value, dict) and name in ("model", "optimizer"):
        return  # what does not fit the model is refused by `restore`
    with pytest.raises(ValueError, match=rf"last\.ckpt.*{name}"):
        load_checkpoint(tmp_path)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("weights", [{"weight": 5, "bias": torch.zeros(2)}, {1: torch.zeros(2)}])
def test_error_of_weights_that_are_no_tensors(tmp_path, weights):
    with pytest.raises(ValueError, match=r"checkpoint of .* has no tensor under"):
        restore(torch.nn.Linear(2, 2), weights, tmp_path)
