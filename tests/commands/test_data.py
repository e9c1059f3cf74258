"""samix data: whether a copy of a set is whole."""

import json

import numpy as np
import pytest
from PIL import Image

from samix.cli import run
from samix.data import OFFICIAL, Official


@pytest.fixture
def pictures(tmp_path):
    """Two classes, three training pictures and two test pictures each."""
    root = tmp_path / "set"
    for part, count in (("train", 3), ("val", 2)):
        for name in ("cat", "dog"):
            (root / part / name).mkdir(parents=True)
            for number in range(count):
                noise = np.random.default_rng(number).integers(0, 256, (10, 12, 3), dtype=np.uint8)
                Image.fromarray(noise).save(root / part / name / f"{number}.png")
    return root


@pytest.fixture
def two(monkeypatch):
    """A published set of the numbers of `pictures`."""
    monkeypatch.setitem(OFFICIAL, "pets", Official(6, 4, 2))


@pytest.fixture
def check(capsys, monkeypatch):
    """Runs the command and returns exit code and what it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def check(*words):
        code = run(["data", *map(str, words)])
        return code, capsys.readouterr().out

    return check


def test_value_a_whole_copy(check, pictures, two):
    code, printed = check("folder", pictures, "--as", "pets")
    assert code == 0 and "nothing wrong" in printed and "10 x 12" in printed and "3 to 3" in printed
    assert "no official numbers" in check("folder", pictures)[1]


def test_value_what_is_wrong_is_said_and_gives_exit_code_1(check, pictures, two):
    (pictures / "train" / "cat" / "1.png").write_bytes(b"no picture")
    cut = pictures / "val" / "dog" / "0.png"
    cut.write_bytes(cut.read_bytes()[:-100])
    code, printed = check("folder", pictures, "--as", "pets")
    assert code == 1
    for words in (
        "5 training pictures, the set has 6",
        "test: 1 pictures that cannot be read",
        "1 files that only",
    ):
        assert words in printed
    assert "test: cannot read the picture" in printed and "dog/0.png" in printed
    assert f"{pictures}/train/cat/1.png is no picture in a known format." in printed


def test_value_quick_decodes_nothing(check, pictures):
    cut = pictures / "val" / "dog" / "0.png"
    cut.write_bytes(cut.read_bytes()[:-100])
    code, printed = check("folder", pictures, "--quick")
    assert code == 0 and "10 x 12" not in printed
    assert check("folder", pictures)[0] == 1


def test_value_for_machines(check, pictures, two):
    code, printed = check("folder", pictures, "--as", "pets", "--json")
    found = json.loads(printed)
    assert code == 0 and found["official"] == {"train": 6, "test": 4, "classes": 2}
    assert found["parts"]["train"]["pictures"] == 6 and found["parts"]["test"]["width"] == 12
    assert found["problems"] == []
    (pictures / "val" / "dog" / "0.png").unlink()
    code, printed = check("folder", pictures, "--as", "pets", "--json")
    assert code == 1 and json.loads(printed)["problems"] == ["3 test pictures, the set has 4"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("cub20",), "unknown dataset 'cub20'. Did you mean 'cub200'? Available: cifar10"),
        (("digits",), "unknown dataset 'digits'"),
        (("folder", "x", "--as", "imagenett"), "--as: unknown set 'imagenett'. Did you mean 'imagenet'?"),
        (("cub200", "nowhere"), "dataset 'cub200' not found: looked in"),
        (("shards", "nowhere"), "nowhere is not a folder"),
    ],
)
def test_error_words(fail, words, answer):
    assert answer in fail("data", *words)
