"""What the page says in words."""

from samix.report import compare
from samix.report.words import verdict
from samix.runs.folder import read_run


def test_value_chance_is_named_with_one_seed_only(write_run):
    runs = [read_run(write_run(f"demo/{name}", name, seed)) for name in ("plain", "samix") for seed in (0, 1)]
    assert "may be chance" in verdict(compare(run for run in runs if run.seed == 0))
    assert "may be chance" not in verdict(compare(runs))
