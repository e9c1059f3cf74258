"""Every Python snippet of the page on the drop-in runs as it is printed there, and every row has one."""

import re
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import samix

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "drop_in.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def network() -> nn.Module:
    """A classifier with the layers that the page names."""
    layers = OrderedDict(layer1=nn.Conv2d(3, 4, 3, 2), layer2=nn.ReLU(), layer4=nn.Conv2d(4, 8, 3))
    rest = OrderedDict(pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), fc=nn.Linear(8, 100))
    return nn.Sequential(layers | rest)


def surroundings() -> dict[str, object]:
    """What a reader has when the page begins."""
    x, y = torch.rand(8, 3, 16, 16), torch.arange(8)
    return {
        "torch": torch,
        "x": x,
        "y": y,
        "model": network(),
        "vit": network(),
        "teacher": network(),
        "cross_entropy": F.cross_entropy,
        "loader": [(x, y), (x, y)],
        "dataset": [(image, int(label)) for image, label in zip(x, y, strict=True)],
        "MEAN": [0.5, 0.5, 0.5],
        "STD": [0.2, 0.2, 0.2],
        "maps": torch.randint(5, (8, 16, 16)),
        "boxes": [torch.tensor([[1.0, 2.0, 9.0, 12.0]])] * 8,
        "box_labels": [torch.tensor([3])] * 8,
    }


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_value_snippets_run_as_they_are_printed(number):
    exec(compile(SNIPPETS[number], f"drop_in.md, snippet {number + 1}", "exec"), surroundings())


def test_value_what_a_snippet_says_it_prints():
    names = surroundings()
    (snippet,) = [each for each in SNIPPETS if "print(mix)" in each]
    exec(snippet, names)
    assert f"# {names['mix']!r}" in snippet


def test_value_every_library_has_a_row_and_a_snippet():
    part = PAGE.partition("## If you use X today")[2].partition("## What you can ask for")[0]
    rows = re.findall(r"^\| (\w+): ", part, flags=re.MULTILINE)
    libraries = {"timm", "torchvision", "kornia", "Keras", "OpenMixup", "fastai", "Lightning"}
    assert set(rows) == libraries and len(rows) >= 9
    assert all(f"\n**{name}" in part for name in libraries) and part.count("```python") == 8


def test_invariant_names_of_the_page_are_names_of_samix():
    used = set(re.findall(r"`(?:\w+\()*([A-Z]\w+)\(", PAGE)) - {"DataLoader", "DistributedDataParallel"}
    theirs = {"Mixup", "FastCollateMixup", "RandomMixUpV2", "Learner"}
    assert {name for name in used - theirs if not hasattr(samix, name)} == set()
