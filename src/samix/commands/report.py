"""samix report RUN...: a table in the terminal and a page with curves and pictures."""

import argparse
from pathlib import Path

from rich.console import Console

from samix.core.words import suggest
from samix.report import as_latex, as_markdown, find_runs, print_table, write_page

FORMATS = {"md": as_markdown, "latex": as_latex}


def run(words: list[str]) -> None:
    """Compares finished and unfinished runs."""
    parser = argparse.ArgumentParser(
        prog="samix report", description="Compare runs: mean and deviation over seeds, curves, pictures."
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, or folders that hold some")
    parser.add_argument("--out", type=Path, help="the page (default: report.html in the first folder)")
    parser.add_argument(
        "--format", help=f"print only the tables, for a text: {', '.join(FORMATS)}; no page is written"
    )
    options = parser.parse_args(words)
    if options.format is not None:
        if options.format not in FORMATS:
            raise ValueError(f"unknown format {suggest(options.format, FORMATS)}")
        if options.out is not None:
            raise ValueError("--out is the page's file, and --format writes none: leave one of them out.")
        print(FORMATS[options.format](find_runs(options.runs)), end="")
        return
    out = options.out or options.runs[0] / "report.html"
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out must end in .html, got {out}.")
    runs = find_runs(options.runs)
    print_table(runs, Console())
    print(f"page: {write_page(runs, out)}")
