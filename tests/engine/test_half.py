"""Half precision trains on this CPU, whatever it forbids."""

import os
import subprocess
import sys

import pytest

from samix.engine import half


@pytest.mark.slow
def test_value_bf16_trains_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.delenv(half.SETTING)
    words = "--epochs 1 --batch_size 8 --data.size 16 --data.train_pictures 24 --data.test_pictures 12"
    words += " --encoder.width 4 --machine.accelerator cpu --machine.precision bf16-mixed --quiet"
    for command in (["train", "demo/samix", "--out", "run", *words.split()], ["eval", "run"]):
        done = subprocess.run(
            [sys.executable, "-m", "samix", *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("code", "needed"), [("import os; os.abort()", True), ("raise SystemExit(1)", False)]
)
def test_value_only_a_death_by_signal_counts(code, needed, monkeypatch):
    monkeypatch.delenv(half.SETTING)
    monkeypatch.setattr(half, "PROBE", code)
    assert half.avoid_forbidden_tiles() == needed
    assert (half.SETTING in os.environ) == needed


def test_value_a_setting_of_the_user_stays(monkeypatch):
    monkeypatch.setenv(half.SETTING, "AVX2")
    monkeypatch.setattr(half, "PROBE", "import os; os.abort()")
    assert not half.avoid_forbidden_tiles()
    assert os.environ[half.SETTING] == "AVX2"
