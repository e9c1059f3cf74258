"""Command lines in an empty folder, and one finished tiny run."""

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from samix.cli import run
from samix.report import page, style

SMALL = [
    "--epochs", "2", "--batch_size", "8", "--encoder.width", "4", "--machine.accelerator", "cpu",
    "--data.size", "16", "--data.train_pictures", "24", "--data.test_pictures", "12",
]  # fmt: skip


@pytest.fixture
def small() -> list[str]:
    """Words that shrink a recipe to seconds."""
    return SMALL


@pytest.fixture(autouse=True)
def coarse_pictures(monkeypatch) -> None:
    """Coarse pixels: these tests look for pictures, not at them."""
    write_png = style.write_png
    for module in (style, page):
        monkeypatch.setattr(module, "write_png", lambda figure, target, dpi=20: write_png(figure, target, 20))


@pytest.fixture
def call(capsys, monkeypatch, tmp_path) -> Callable[..., str]:
    """Runs a command line that must succeed, in an empty folder, and returns what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("SAMIX_DATA", raising=False)

    def call(*words: object) -> str:
        code = run([str(word) for word in words])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    return call


@pytest.fixture
def fail(capsys, monkeypatch, tmp_path) -> Callable[..., str]:
    """Runs a command line that must be refused, and returns what it says."""
    monkeypatch.chdir(tmp_path)

    def fail(*words: object) -> str:
        code = run([str(word) for word in words])
        _, err = capsys.readouterr()
        assert code == 2 and "Traceback" not in err
        return err

    return fail


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """The folder of a finished run of SAMix with a clean branch that has a head of its own; read only."""
    folder = tmp_path_factory.mktemp("runs") / "samix" / "0"
    branch = ["--objective.clean_weight", "1", "--objective.clean_head", "true"]
    words = ["train", "demo/samix", "--out", str(folder), *SMALL, *branch, "--quiet"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(words) == 0
    return folder
