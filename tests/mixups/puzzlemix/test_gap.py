"""The benchmark of PuzzleMix's solver runs and prints what it promises."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "puzzle_gap.py"


@pytest.fixture(scope="module")
def puzzle_gap():
    pytest.importorskip("maxflow")
    spec = importlib.util.spec_from_file_location("puzzle_gap", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_value_json(puzzle_gap, capsys):
    puzzle_gap.main(["--pairs", "24", "--batch", "8", "--rounds", "3", "--blocks", "2", "8", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["blocks"] for row in rows] == [2, 8]
    assert rows[0]["mean_gap"] == pytest.approx(0, abs=1e-9) and rows[0]["exact"] == 1
    assert 0 <= rows[1]["mean_gap"] <= rows[1]["largest_gap"] and rows[1]["mean_gap"] < 0.01
    assert all(row["cut_us"] > 0 and row["solver_us"] > 0 and row["speedup"] > 0 for row in rows)


def test_value_table(puzzle_gap, capsys):
    puzzle_gap.main(["--pairs", "4", "--batch", "4", "--rounds", "1", "--blocks", "4"])
    assert "speed-up" in capsys.readouterr().out


def test_invariant_a_seed_fixes_the_pictures(puzzle_gap):
    first, second = (puzzle_gap.random_energy(4, 4, 7).unary for _ in range(2))
    assert torch.equal(first, second)
