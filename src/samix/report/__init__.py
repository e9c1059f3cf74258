"""Report: tables, figures and one page out of run folders; never out of a live model."""

from samix.report.figures import comparison_figure, draw_samples, pair_figure, sample_figure, save_png
from samix.report.lines import compare
from samix.report.page import write_page
from samix.report.paper_tables import as_latex, as_markdown
from samix.report.tables import print_table
from samix.runs.folder import Run, find_runs, read_run
from samix.runs.samples import Samples

__all__ = [
    "Run",
    "Samples",
    "as_latex",
    "as_markdown",
    "compare",
    "comparison_figure",
    "draw_samples",
    "find_runs",
    "pair_figure",
    "print_table",
    "read_run",
    "sample_figure",
    "save_png",
    "write_page",
]
