"""The tables for a text: escaped names, bold best numbers, mean and deviation."""

import pytest

from samix.report.paper_tables import as_latex, as_markdown, in_latex, in_markdown
from samix.runs.folder import read_run


@pytest.fixture
def runs(write_run):
    name = r"demo_1/a_b|c&d%"
    folders = [write_run("demo_1/plain", "plain", seed, top1=60.0 + seed) for seed in (0, 1)]
    folders += [write_run(name, "cutmix", seed, top1=62.0 + seed, folder="odd") for seed in (0, 1)]
    return list(map(read_run, folders))


def test_value_markdown(runs):
    title, _, head, bars, plain, cutmix = as_markdown(runs).splitlines()
    assert title == r"**demo\_1**" and head.startswith("| method | seeds | top-1 % | ")
    assert bars.count("---") == head.count(" | ") + 1 == plain.count(" | ") + 1
    assert plain.startswith("| plain | 2 | 60.50 ± 0.71 |")
    assert cutmix.startswith(r"| a\_b\|c&d% | 2 | **62.50 ± 0.71** |") and "more |" in cutmix


def test_value_latex(runs):
    lines = as_latex(runs).splitlines()
    assert lines[1].startswith(r"\begin{tabular}{lr") and lines[-1] == r"\end{tabular}"
    head, plain, cutmix = lines[3], lines[5], lines[6]
    assert head.count(" & ") == plain.count(" & ") == len(lines[1].split("{l")[1]) - 1
    assert plain.startswith(r"plain & 2 & 60.50 $\pm$ 0.71 & ") and plain.endswith(r" \\")
    assert cutmix.startswith(r"a\_b\textbar{}c\&d\% & 2 & \textbf{62.50 $\pm$ 0.71} & ")


def test_value_signs_are_escaped():
    assert in_latex("\\~^{x}_#$&%[<>") == (
        r"\textbackslash{}\textasciitilde{}\textasciicircum{}\{x\}\_\#\$\&\%{[}\textless{}\textgreater{}"
    )
    assert in_markdown("*a* `b` [c](d) <e>\nf") == r"\*a\* \`b\` \[c\](d) \<e\> f"
