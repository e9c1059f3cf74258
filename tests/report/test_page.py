"""The page: its sections, and that it needs no other file."""

import re
import shutil
from html.parser import HTMLParser

import pytest

from samix.report import find_runs, write_page
from samix.report import page as module
from samix.report.page import page_html
from samix.report.style import write_png
from samix.runs.folder import read_run

VOID = {"meta", "img"}


class Outline(HTMLParser):
    """Headings, pictures and tags of a page; fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.headings, self.pictures = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "img":
            self.pictures.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(data)


@pytest.fixture(autouse=True)
def no_pixels(monkeypatch):
    """Figures are made but not drawn: these tests read the page, they do not look at it."""
    monkeypatch.setattr(module, "write_png", lambda figure, target: target.write(b"\x89PNG"))


@pytest.fixture
def full(write_run, tmp_path):
    for name, top1 in (("plain", 50.0), ("mixup", 55.0), ("cutmix", 56.5), ("samix", 60.25)):
        write_run(f"demo/{name}", name, top1=top1)
    return find_runs([tmp_path / "runs"])


def test_value_page_has_every_section(full, tmp_path):
    path = write_page(full, tmp_path / "out" / "report.html")
    text = path.read_text()
    outline = Outline(text)
    assert outline.headings == [
        "samix report", "demo", "Accuracy and loss", "What accuracy costs",
        "Mixed images and their masks", "What the Mixer attends to", "Health of the Mixer",
        "What survives of the objects", "How each run was made",
    ]  # fmt: skip
    assert (
        "<b>samix</b> reaches 60.25 % top-1, 3.75 points more than cutmix and 10.25 more than plain" in text
    )
    assert "samix train demo/cutmix" in text
    assert "commit abc123, 10 seconds, 1000 images/s, 500 MB, torch 2" in text
    assert list(path.parent.iterdir()) == [path]


def test_value_page_needs_nothing_else(full, monkeypatch):
    monkeypatch.setattr(module, "write_png", lambda figure, target: write_png(figure, target, dpi=12))
    text = page_html(full)
    outline = Outline(text)
    assert len(outline.pictures) == 6
    for picture in outline.pictures:
        assert picture["src"].startswith("data:image/png;base64,")
        assert len(picture["alt"]) > 20
    assert text.count("src=") == len(outline.pictures)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in outline.tags}
    assert not any("href" in attrs for _, attrs in outline.tags)
    assert not re.search(r"https?://|url\(|@import", text)


def test_value_strings_from_files_are_escaped(write_run):
    evil = '<script>alert("x")</script>'
    path = write_run(
        f"{evil}/samix-{evil}", folder="evil", settings={"note": evil},
        summary={"command": evil, "commit": evil, "versions": {evil: evil}},
    )  # fmt: skip
    text = page_html([read_run(path)])
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 5
    Outline(text)


def test_value_unfinished_runs_say_so(write_run):
    text = page_html([read_run(write_run(finished=False))])
    assert "No run is finished yet." in text
    assert "not finished: 4 epochs of 4" in text
    assert "command not recorded" in text


def test_value_a_bare_run_has_no_empty_sections(write_run):
    path = write_run("demo/plain", "plain")
    (path / "samples.npz").unlink()
    (path / "metrics.csv").unlink()
    outline = Outline(page_html([read_run(path)]))
    assert outline.headings == ["samix report", "demo", "How each run was made"]


def test_value_runs_on_other_pictures_get_figures_of_their_own(write_run):
    same = [write_run("demo/mixup", "mixup"), write_run("demo/cutmix", "cutmix")]
    other = write_run("demo/fmix", "fmix", pictures=1)
    alts = [picture["alt"] for picture in Outline(page_html([read_run(p) for p in [*same, other]])).pictures]
    assert any("same pairs of pictures mixed by mixup, cutmix," in alt for alt in alts)
    assert any("Pairs of pictures mixed by fmix," in alt for alt in alts)


def test_value_families_have_sections_and_different_setups_are_named(write_run):
    runs = [
        read_run(write_run("a/plain", "plain", settings={"epochs": 9})),
        read_run(write_run("a/mixup", "mixup")),
        read_run(write_run("b/mixup", "mixup")),
    ]
    text = page_html(runs)
    assert {"a", "b"} <= set(Outline(text).headings)
    assert text.count("differ in more than the way they mix") == 1


def test_error_without_runs(tmp_path):
    with pytest.raises(ValueError, match="at least one run"):
        write_page([], tmp_path / "report.html")


def test_value_page_says_who_has_a_clean_branch(write_run):
    mixup, samix = write_run("demo/mixup", "mixup"), write_run("demo/samix", clean_weight=1.0)
    assert "<b>samix</b> also learns from the pictures as they are" in page_html(
        [read_run(mixup), read_run(samix)]
    )
    assert "clean branch" not in page_html([read_run(mixup)])


def test_value_page_names_runs_that_count_once(write_run):
    path = write_run()
    shutil.copytree(path, path.with_name("copy"))
    text = page_html([read_run(path), read_run(path.with_name("copy"))])
    assert text.count("samix: seed 0 occurs more than once and counts once") == 1
    assert text.count("samix train demo/samix") == 2  # how each was made is still told


def test_value_runs_that_differ_late_keep_their_pictures(write_run):
    changes = {"a": 1, "b": 1, "c": 1}
    first = write_run(settings=changes | {"z": 1})
    other = write_run(seed=1, settings=changes | {"z": 2}, pictures=1)
    third = write_run(seed=2, settings={"a": 2, "b": 2, "c": 2, "z": 1}, pictures=2)
    alts = [each["alt"] for each in Outline(page_html([read_run(p) for p in (first, other, third)])).pictures]
    assert len([alt for alt in alts if alt.startswith("Pairs of pictures mixed by samix [a ")]) == 3
