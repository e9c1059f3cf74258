"""One HTML file that shows a comparison: it needs no other file, no network and no script."""

import base64
import io
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from matplotlib.figure import Figure

from samix.report.charts import curves_figure, mixer_figure, retention_figure
from samix.report.costs import cost_figure
from samix.report.figures import attention_figure, comparison_figure, same_pairs, sample_figure
from samix.report.groups import Group, group_runs
from samix.report.lines import Line, line_of, list_repeats
from samix.report.style import write_png
from samix.report.tables import html_standing, html_table
from samix.report.words import LEGENDS, introduction, score_of, standing_note, verdict
from samix.runs.files import write_text
from samix.runs.folder import Run
from samix.runs.samples import Samples, read_retention, read_samples

STYLE = """
:root { color-scheme: light dark;
  --ink: #1d1d1f; --soft: #6a6a70; --line: #dcdce0; --page: #fff; --code: #f4f4f6 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececee; --soft: #a0a0a8; --line: #3a3a40; --page: #17171a; --code: #232327 }
}
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem;
  color: var(--ink); background: var(--page); font: 16px/1.55 system-ui, sans-serif }
h1 { font-size: 1.9rem; margin: 0 0 .5rem } h2 { font-size: 1.35rem; margin: 2.8rem 0 .4rem }
h3 { font-size: 1.05rem; margin: 2.2rem 0 .3rem }
p, figcaption { max-width: 46rem } p { margin: .3rem 0 .9rem }
figure { margin: .8rem 0 0 } figcaption { margin-top: .5rem }
figcaption, .soft { color: var(--soft); font-size: .9rem }
img { max-width: 100%; height: auto; display: block; background: #fff; border-radius: 6px }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem }
th, td { padding: .35rem .9rem .35rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line) }
thead th { color: var(--soft); font-weight: 500 } th[scope=row] { font-weight: 500 }
th:first-child { text-align: left }
.run { border-bottom: 1px solid var(--line); padding: .6rem 0 }
code, pre { background: var(--code); border-radius: 4px; font-size: .85rem; overflow-wrap: anywhere }
code { padding: .1rem .35rem } pre { padding: .7rem; white-space: pre-wrap } summary { cursor: pointer }
@media (prefers-color-scheme: dark) { figure img { padding: .6rem; box-sizing: border-box } }
"""


def write_page(runs: Sequence[Run], out: Path) -> Path:
    """Writes the report of `runs` to the file `out`, atomically."""
    if not runs:
        raise ValueError("a report needs at least one run.")
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, page_html(runs))
    return out


def page_html(runs: Sequence[Run]) -> str:
    """The whole document."""
    families = [(name, list(groups)) for name, groups in groupby(group_runs(runs), key=lambda g: g.family)]
    title = "samix report: " + ", ".join(name or "runs" for name, _ in families)
    body = "\n".join(family_section(name, groups) for name, groups in families)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>samix report</h1>
{body}
<h2>How each run was made</h2>
{"".join(map(run_record, runs))}
</body>
</html>
"""


def family_section(name: str, groups: Sequence[Group]) -> str:
    """Everything about the runs that belong into one table."""
    lines = list(map(line_of, groups))
    parts = [
        f"<section><h2>{escape(name or 'runs')}</h2>",
        f"<p>{introduction(groups)} {verdict(lines)}</p>",
        f'<div class="wide">{html_table(lines)}</div>',
        f'<p class="soft">{LEGENDS[groups[0].accuracy]} Over several seeds: mean ± standard deviation.</p>',
        standing_part(lines),
        *(f'<p class="soft">{escape(note)}</p>' for note in list_repeats(lines)),
        curves_part(groups, lines),
        costs_part(groups, lines),
        samples_part(groups),
        attention_part(groups),
        mixer_part(groups),
        retention_part(groups),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def standing_part(lines: Sequence[Line]) -> str:
    """How far methods lie from plain training and from the paper."""
    table = html_standing(lines)
    return f'<div class="wide">{table}</div><p class="soft">{standing_note(lines)}</p>' if table else ""


def curves_part(groups: Sequence[Group], lines: Sequence[Line]) -> str:
    """Accuracy and loss over epochs."""
    if not any(run.rows for group in groups for run in group.runs):
        return ""
    ends = [f"{x.group.method} {score.mean:.1f} %" for x in lines if (score := score_of(x))]
    alt = "Test accuracy and training loss over epochs: " + (", ".join(ends) or "not known yet") + "."
    note = (
        "Bands span the seeds. Mixed labels are harder to fit, so a mixup's training loss is higher than "
        "that of plain training even where its accuracy is higher."
    )
    return f"<h3>Accuracy and loss</h3>{figure_html(curves_figure(groups), alt, note)}"


def costs_part(groups: Sequence[Group], lines: Sequence[Line]) -> str:
    """Accuracy against training time and memory."""
    figure = cost_figure(groups)
    if figure is None:
        return ""
    told = [
        f"{line.group.method} {score.mean:.1f} % in {line.values['seconds'].mean:.0f} s"
        for line in lines
        if (score := score_of(line)) and "seconds" in line.values
    ]
    note = (
        "Points are means over seeds, bars one standard deviation. Times compare on one machine with equal "
        "load only."
    )
    alt = "Accuracy against training time and memory: " + ", ".join(told) + "."
    return f"<h3>What accuracy costs</h3>{figure_html(figure, alt, note)}"


def samples_of(groups: Sequence[Group]) -> dict[str, Samples]:
    """Mixed pictures by method label: of the first seed that has any, not of plain, which mixes nothing."""
    found = {}
    for group in groups:
        drawn = [each for each in (read_samples(run.path) for run in group.runs) if each is not None]
        if drawn and group.mixup != "plain":
            found[group.method] = drawn[0]
    return found


def samples_part(groups: Sequence[Group]) -> str:
    """Mixed images and masks: methods side by side where they mixed the same pictures."""
    rest, figures = samples_of(groups), []
    mixups = {group.method: group.mixup for group in groups}
    while rest:
        one = next(iter(rest.values()))
        together = {label: each for label, each in rest.items() if same_pairs(one, each)}
        rest = {label: each for label, each in rest.items() if label not in together}
        names = ", ".join(together)
        if len(together) > 1:
            alt = f"The same pairs of pictures mixed by {names}, with lam rising from left to right."
            figures.append(figure_html(comparison_figure(together, mixups), alt, ""))
        else:
            alt = f"Pairs of pictures mixed by {names}, with lam rising from left to right, masks below."
            figures.append(figure_html(sample_figure(one, names), alt, ""))
    if not figures:
        return ""
    note = (
        "λ is the weight of the first picture in the label. The mask shows which pixels come from it. A good "
        "mask covers a share λ of the picture and still keeps something to recognise of both."
    )
    return f"<h3>Mixed images and their masks</h3><p>{note}</p>{''.join(figures)}"


def attention_part(groups: Sequence[Group]) -> str:
    """What the Mixer attends to, for every learned policy."""
    note = (
        "At λ = 0.5. Content: what the Mixer values in the picture itself. Attention: which places of the "
        "picture the mask's places look at. Every map is stretched over its own range, written below it: a "
        "narrow range means that the Mixer sees little difference."
    )
    figures = [
        figure_html(
            attention_figure(each, label), f"Pictures with content and attention maps of {label}.", ""
        )
        for label, each in samples_of(groups).items()
        if each.content is not None and each.attention is not None
    ]
    return f"<h3>What the Mixer attends to</h3><p>{note}</p>{''.join(figures)}" if figures else ""


def mixer_part(groups: Sequence[Group]) -> str:
    """The Mixer's health over epochs, for every learned policy."""
    columns = ("gamma", "gap", "deviation", "local")
    learned = [g for g in groups if any(run.series(column) for run in g.runs for column in columns)]
    if not learned:
        return ""
    ends = [f"{g.method}: {last_values(g.runs[0])}" for g in learned]
    note = (
        "The gap between the mean of the mask and λ should stay below 0.1 (dotted), else labels lie. A "
        "deviation near 0 means constant masks: the Mixer has collapsed to plain Mixup."
    )
    alt = "Gamma, gap, deviation and losses of the Mixer over epochs. At the end: " + "; ".join(ends) + "."
    return f"<h3>Health of the Mixer</h3>{figure_html(mixer_figure(learned), alt, note)}"


def last_values(run: Run) -> str:
    """The last measured gamma, gap and deviation."""
    last = {column: list(run.series(column).values())[-1:] for column in ("gamma", "gap", "deviation")}
    return ", ".join(f"{column} {value[0]:.3g}" for column, value in last.items() if value)


def retention_part(groups: Sequence[Group]) -> str:
    """How much of the objects survives, where the dataset knows."""
    measured = [group for group in groups if any(read_retention(run.path) for run in group.runs)]
    if not measured:
        return ""
    note = (
        "The embedded pictures come with the true place of their object, so one can count. A policy that "
        "does not look at the pictures keeps 0.5 on average (dotted); above it, pixels are spent on objects."
    )
    alt = "Share of object pixels kept over lam by " + ", ".join(group.method for group in measured) + "."
    return f"<h3>What survives of the objects</h3>{figure_html(retention_figure(measured), alt, note)}"


def figure_html(figure: Figure, alt: str, note: str) -> str:
    """A figure inside the page itself, with words for those who cannot see it."""
    data = io.BytesIO()
    write_png(figure, data)
    source = "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    return f'<figure><img src="{source}" alt="{escape(alt)}">{caption}</figure>'


def run_record(run: Run) -> str:
    """Command, commit, cost and settings of one run."""
    settings = escape(yaml.safe_dump(run.config, sort_keys=False))
    return f"""<div class="run"><b>{escape(run.recipe)}</b>, seed {run.seed}
<div><code>{escape(str((run.summary or {}).get("command", "")) or "command not recorded")}</code></div>
<div class="soft">{escape(costs(run))}</div>
<details class="soft"><summary>all settings</summary><pre>{settings}</pre></details></div>
"""


def costs(run: Run) -> str:
    """'commit abc, 66 seconds, 1300 images/s, 540 MB, torch 2.13', as far as it is known."""
    if run.summary is None:
        epochs = run.config.get("epochs", "unknown")
        return f"not finished: {len(run.rows)} epochs of {epochs}"
    parts = [f"commit {run.summary['commit']}"] if run.summary.get("commit") else []
    units: dict[str, str] = {"seconds": "seconds", "images_per_s": "images/s", "peak_mb": "MB"}
    parts += [
        f"{float(run.summary[key]):.0f} {unit}"
        for key, unit in units.items()
        if run.summary.get(key) is not None
    ]
    versions: dict[str, Any] = run.summary.get("versions") or {}
    return ", ".join(parts + [f"{name} {version}" for name, version in versions.items()])
