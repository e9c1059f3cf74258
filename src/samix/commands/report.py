"""samix report RUN...: a table in the terminal and a page with curves and pictures."""

import argparse
from pathlib import Path

from rich.console import Console

from samix.report import find_runs, print_table, write_page


def run(words: list[str]) -> None:
    """Compares finished and unfinished runs."""
    parser = argparse.ArgumentParser(
        prog="samix report", description="Compare runs: mean and deviation over seeds, curves, pictures."
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, or folders that hold some")
    parser.add_argument("--out", type=Path, help="the page (default: report.html in the first folder)")
    options = parser.parse_args(words)
    out = options.out or options.runs[0] / "report.html"
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out must end in .html, got {out}.")
    runs = find_runs(options.runs)
    print_table(runs, Console())
    print(f"page: {write_page(runs, out)}")
