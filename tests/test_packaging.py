"""The wheel, installed where samix's source is not, works from any folder."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from samix import __version__

ROOT = Path(__file__).resolve().parents[1]
STAND_INS = ("stand-in.safetensors", "stand-in.md")
"""A Mixer's file and its card: what is in their folder must be in the wheel."""
PARTS = ("pyproject.toml", "README.md", "LICENSE", "src")


def run(*words: object, cwd: Path) -> str:
    """Runs a program without the variables that would let it find the source."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["COLUMNS"] = "200"
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy so that the checkout stays clean."""
    source = tmp_path_factory.mktemp("source")
    for name in PARTS:
        part = ROOT / name
        if part.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(part, source / name, ignore=ignored)
        else:
            shutil.copy(part, source / name)
    mixers = source / "src" / "samix" / "mixers"
    mixers.mkdir(exist_ok=True)
    for name in STAND_INS:
        (mixers / name).touch()
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", source / "dist", cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel in it; the packages that samix needs are borrowed from this one."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    words = ["--python", python, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel]
    run(sys.executable, "-m", "pip", *words, cwd=folder)
    # A path added this way does not run the .pth files inside, so an editable samix there stays unseen.
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.mark.slow
def test_value_the_wheel_holds_every_module_and_the_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "samix").rglob("*.py")}
    assert modules <= names
    shipped = {path.name for path in (ROOT / "src" / "samix" / "mixers").glob("*.*")} | set(STAND_INS)
    assert {f"samix/mixers/{name}" for name in shipped} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests", "examples", "benchmarks")) for name in names)


@pytest.mark.slow
def test_value_import_from_another_folder(environment, tmp_path):
    code = "import samix; print(samix.__file__); print(samix.__version__)"
    where, version = run(environment / "bin" / "python", "-c", code, cwd=tmp_path).split()
    assert Path(where).is_relative_to(environment)
    assert version == __version__


@pytest.mark.slow
def test_value_commands_from_another_folder(environment, tmp_path):
    assert run(environment / "bin" / "samix", "--version", cwd=tmp_path) == f"samix {__version__}\n"
    assert "cifar10-small" in run(environment / "bin" / "samix", "recipes", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
