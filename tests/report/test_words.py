"""What the page says in words."""

from samix.report import compare
from samix.report.words import verdict
from samix.runs.folder import read_run


def test_value_chance_is_named_with_one_seed_only(write_run):
    runs = [read_run(write_run(f"demo/{name}", name, seed)) for name in ("plain", "samix") for seed in (0, 1)]
    assert "may be chance" in verdict(compare(run for run in runs if run.seed == 0))
    assert "may be chance" not in verdict(compare(runs))


def test_value_leads_are_those_of_the_numbers_that_are_shown(write_run):
    scores = {"samix": 85.4249, "cutmix": 70.7851, "plain": 60.005}
    text = verdict(
        compare(read_run(write_run(f"demo/{name}", name, top1=top1)) for name, top1 in scores.items())
    )
    assert "reaches 85.42 % top-1, 14.63 points more than cutmix" in text  # 85.42 beside 70.79
    assert f"and {85.42 - round(60.005, 2):.2f} more than plain" in text
