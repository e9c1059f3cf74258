"""What a person sees: lines without a terminal, a bar on one, nothing when quiet."""

import io

import torch
from rich.console import Console

from samix.contract import Losses
from samix.engine import progress
from samix.engine.progress import Progress

LOSSES = Losses(torch.tensor(1.25))


def watch(recipe, quiet: bool = False) -> None:
    with Progress(recipe, 4, quiet=quiet) as shown:
        for epoch in range(1, recipe.epochs + 1):
            for step in range(4):
                shown.step(epoch, 4 * (epoch - 1) + step, LOSSES)
            shown.epoch({"epoch": float(epoch), "loss": 1.25, "top1": 40.0 + epoch, "images_per_s": 1234.0})


def test_value_lines_without_a_terminal(tiny, capsys):
    watch(tiny(epochs=40))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert len(lines) == 10
    assert " ".join(lines[-1].split()) == "samix epoch 40/40 loss 1.250 top-1 80.00 % 1,234 images/s"


def test_value_quiet(tiny, capsys):
    watch(tiny(), quiet=True)
    assert capsys.readouterr().out == ""


def test_value_a_bar_on_a_terminal(tiny, monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "Console", lambda quiet: terminal)
    watch(tiny())
    text = screen.getvalue()
    for words in ("samix", "epoch 3/3", "loss 1.250", "top-1 42.00 %", "images/s", "0:00:00"):
        assert words in text
