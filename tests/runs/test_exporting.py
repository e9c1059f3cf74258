"""Exported Mixers: where they go, what they say of the run, and what they keep to themselves."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from samix.runs.exporting import describe_run, export_mixer, public_command
from samix.runs.folder import read_run
from samix.runs.mixer_file import read_mixer_file
from samix.runs.mixers import load_mixer


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of a finished run to write into."""
    return shutil.copytree(finished, tmp_path / "run")


def test_value_places(run, tmp_path):
    assert export_mixer(run) == (run / "export" / "mixer.safetensors", run / "export" / "README.md")
    assert export_mixer(run, tmp_path / "a" / "b") == tuple(
        tmp_path / "a" / "b" / name for name in ("mixer.safetensors", "README.md")
    )
    weights, card = export_mixer(run, tmp_path / "tiny.safetensors", half=True)
    assert (weights.name, card.name) == ("tiny.safetensors", "tiny.md") and card.is_file()
    assert weights.stat().st_size < 0.7 * (run / "export" / "mixer.safetensors").stat().st_size
    assert load_mixer(weights).alpha == 2.0


def test_value_the_header_says_where_it_comes_from(run, read_json):
    about = read_mixer_file(export_mixer(run, license="cc-by-4.0").weights).about
    summary = read_json(run / "summary.json")
    assert about["name"] == "tiny/samix" and about["data"] == "synthetic" and about["license"] == "cc-by-4.0"
    assert about["pictures"] == 24 and about["pictures_seen"] == 72 and about["command"] == summary["command"]
    assert about["commit"] == summary["commit"] and about["seed"] == 0
    figures = about["figures"]
    assert {name: figures[name] for name in ("correlation", "gap", "deviation")} == summary["mask"]
    rows = [line.split(",") for line in (run / "retention.csv").read_text().splitlines()]
    both = [float(row[rows[0].index("both")]) for row in rows[1:]]
    assert figures["retention"] == pytest.approx(sum(both) / len(both))
    assert figures["gamma"] == pytest.approx(read_run(run).rows[-1]["gamma"])


def test_value_a_run_that_tells_little(run):
    for name in ("summary.json", "run.json", "retention.csv", "metrics.csv"):
        (run / name).unlink()
    about = describe_run(read_run(run))
    assert "figures" not in about and "command" not in about and about["data"] == "synthetic"
    assert "The run measured none." in export_mixer(run).card.read_text()


def test_value_the_card(run):
    text = export_mixer(run, license="mit").card.read_text()
    _, head, body = text.split("---\n", 2)
    told = yaml.safe_load(head)
    assert told["license"] == "mit" and told["library_name"] == "samix" and "mixup" in told["tags"]
    assert 'samix.Mix(samix.load_mixer("mixer.safetensors"), classes=10' in body
    assert "tiny/samix" in body and "| gap" not in body and "| 0.2" in body
    assert "samix itself is Apache-2.0" in body


def test_value_names_in_a_card_are_only_shown(run):
    summary = json.loads((run / "summary.json").read_text())
    summary["recipe"] = "a [b](http://c) <script>x</script>\n# title `d` *e*"
    summary["command"] = "samix train `x` \n``` y"
    (run / "summary.json").write_text(json.dumps(summary))
    text = export_mixer(run, license="x\n---\nevil: yes").card.read_text()
    assert "<script>" not in text and "\n# title" not in text and "[b](" not in text and "\n``` y" not in text
    assert yaml.safe_load(text.split("---\n")[1])["license"] == "x --- evil: yes"


def test_value_commands_without_the_places_of_this_machine():
    command = "samix train demo --data.root /home/me/birds --out=runs/x --data.root=/home/me/cats '~/a b'"
    expected = "samix train demo --data.root birds --out=runs/x --data.root=cats 'a b'"
    assert public_command(command) == expected
    assert public_command("samix 'cut") == ""


def test_error_runs_without_a_mixer(run, tmp_path):
    (run / "mixer.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no mixer.safetensors, which a run with a learned mixup"):
        export_mixer(run)


def test_error_a_file_that_is_no_place(run, tmp_path):
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises(
        ValueError, match=r"--out must be a folder or end in .safetensors, got the file .*file.txt"
    ):
        export_mixer(run, tmp_path / "file.txt")
