"""Tables over seeds: numbers, the best one, and what fits into a terminal."""

import io
import json
import re
import shutil

import numpy as np
import pytest
from rich.console import Console

from samix.report.lines import (
    MEASURES,
    compare,
    is_best,
    list_repeats,
    measures_of,
)
from samix.report.tables import html_rows, html_table, print_table
from samix.runs.folder import read_run


def printed(runs, width=120, **options):
    console = Console(file=io.StringIO(), width=width, **options)
    print_table(runs, console)
    return console.file.getvalue()


def test_value_mean_and_std_against_numpy(write_run):
    scores = [60.0, 61.5, 64.25]
    runs = [read_run(write_run(seed=seed, top1=top1)) for seed, top1 in enumerate(scores)]
    (line,) = compare(runs)
    expected = {
        "top1": scores,
        "best": [s + 2 for s in scores],
        "last": [s + 1 for s in scores],
        "ece": [100 - s for s in scores],
        "seconds": [10, 11, 12],
    }
    assert set(line.values) == set(expected)
    for name, numbers in expected.items():
        assert line.values[name] == pytest.approx((np.mean(numbers), np.std(numbers, ddof=1)))


def test_value_one_seed_has_no_std(write_run):
    (line,) = compare([read_run(write_run(top1=61.234))])
    assert line.values["top1"].std is None
    assert line.values["top1"].text(2) == "61.23"
    assert "±" not in html_rows([line])


def test_value_the_best_of_each_family_is_bold(write_run):
    runs = [
        read_run(write_run("demo/plain", "plain", top1=50.0)),
        read_run(write_run("demo/cutmix", "cutmix", top1=70.0)),
        read_run(write_run("demo/samix", "samix", top1=70.001)),
        read_run(write_run("other/plain", "plain", top1=90.0)),
    ]
    lines = compare(runs)
    top1, ece, seconds = MEASURES[0], MEASURES[3], MEASURES[-1]
    assert [is_best(line, top1, lines) for line in lines] == [False, True, True, False]
    assert [is_best(line, ece, lines) for line in lines] == [False, True, True, False]
    assert not any(is_best(line, seconds, lines) for line in lines)
    rows = html_rows(lines).splitlines()
    assert "<b>70.00</b>" in rows[1]
    assert "<b>" not in rows[0] + rows[3]
    bold = printed(runs, force_terminal=True, color_system="standard")
    assert re.search(r"\x1b\[1m *70\.00", bold)
    assert not re.search(r"\x1b\[1m *50\.00", bold)


def test_value_unfinished_runs_are_shown_but_not_counted(write_run):
    runs = [
        read_run(write_run(seed=0, top1=60.0)),
        read_run(write_run(seed=1, finished=False)),
        read_run(write_run("demo/cutmix", "cutmix", finished=False)),
    ]
    cutmix, samix = compare(runs)
    assert (cutmix.seeds, samix.seeds) == ("0 of 1", "1 of 2")
    assert cutmix.values == {}
    assert samix.values["top1"] == (60.0, None)
    assert "–" in printed(runs)


def test_value_names_are_neither_markup_nor_html(write_run):
    runs = [read_run(write_run("demo[red]x/samix-[red]<b>", folder="odd"))]
    text = printed(runs)
    assert "demo[red]x" in text
    assert "samix-[red]<b>" in text
    assert "samix-[red]&lt;b&gt;" in html_rows(compare(runs))


def test_value_pretraining_has_columns_of_its_own(write_run, capsys):
    path = write_run("ssl-demo/moco-v2+samix-i", "samix-i", settings={"method": {"name": "moco-v2"}})
    summary = json.loads((path / "summary.json").read_text())
    for name in ("top1", "best", "last", "ece"):
        summary.pop(name)
    (path / "summary.json").write_text(json.dumps(summary | {"knn": 41.25, "linear": 47.5}))
    lines = compare([read_run(path)])
    assert [m.name for m in measures_of(lines)] == ["knn", "linear", "seconds"]
    assert (lines[0].group.family, lines[0].group.method) == ("ssl-demo/moco-v2", "samix-i")
    print_table([read_run(path)], Console(width=120))
    out = capsys.readouterr().out
    assert "k-NN %" in out and "41.25" in out and "top-1" not in out


def test_value_names_are_whole_at_80_columns(write_run):
    names = ("plain", "mixup", "mixup-clean", "mixup2-clean", "automix", "samix-fast")
    summary = {"ece": 12.34, "seconds": 12345.0}
    runs = [
        read_run(write_run(f"{family}/{name}", name.split("-")[0], seed, top1=50.0 + seed, summary=summary))
        for family in ("cifar10-small", "cifar10-long")
        for name in names
        for seed in (0, 1)
    ]
    text = printed(runs, width=80)
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "…" not in text
    for family in ("cifar10-small", "cifar10-long"):
        assert lines.count(family) == 1
    for name in names:
        numbers = r" +│ +2 │ 50\.50 ± 0\.71 │ 12\.34 ± 0\.00 │ +12345 ± 0"
        assert len([line for line in lines if re.fullmatch(re.escape(name) + numbers, line.rstrip())]) == 2
    assert "best" not in text and "best" in printed(runs, width=100)


def test_value_columns_that_do_not_fit_are_left_out(write_run):
    summary = {"knn": 41.25, "linear": 47.5, "nmi": 0.123, "seconds": 12345.0}
    settings = {"method": {"name": "moco-v2"}}
    name = "a-name-of-24-characters."
    runs = [
        read_run(write_run(f"ssl/moco-v2+{name}", "cutmix", seed, summary=summary, settings=settings))
        for seed in (0, 1)
    ]
    for run in runs:
        for key in ("top1", "best", "last", "ece"):
            run.summary.pop(key)
    text = printed(runs, width=80)
    assert name in text and "0.123 ± 0.000" in text and "…" not in text
    assert "seconds" not in text and "seconds" in printed(runs, width=100)
    assert "41.25 ± 0.00" in printed(runs, width=50)


def test_value_a_seed_that_occurs_twice_counts_once(write_run):
    path = write_run(top1=60.0)
    shutil.copytree(path, path.with_name("copy"))
    runs = [read_run(path), read_run(path.with_name("copy"))]
    (line,) = compare(runs)
    assert (line.seeds, line.values["top1"]) == ("1", (60.0, None))
    (note,) = list_repeats([line])
    assert note.startswith("samix: seed 0 occurs more than once and counts once; without ")
    assert note.endswith("copy.")
    assert "seed 0 occurs more than once" in printed(runs)


def test_value_probes_have_columns_of_their_own(write_run):
    paths = [write_run(seed=seed) for seed in (0, 1)]
    for seed, path in enumerate(paths):
        (path / "knn.json").write_text(json.dumps({"top1": 40.0 + seed, "top5": 90.0, "k": 200}))
    (paths[0] / "linear.json").write_text(json.dumps({"top1": 55.5}))
    (line,) = compare(map(read_run, paths))
    assert line.values["knn.json"].text(2) == "40.50 ± 0.71"
    assert line.values["linear.json"].text(2) == "55.50"
    assert "samix knn %" in printed(map(read_run, paths)) and "samix linear %" in html_table([line])


def test_value_names_do_not_steer_the_terminal(write_run):
    run = read_run(write_run(summary={"recipe": "de\x1b[2Jmo/sa\x07mix"}))
    text = printed([run])
    assert "\x1b" not in text and "\x07" not in text
    assert r"de\x1b[2Jmo" in text and r"sa\x07mix" in text
