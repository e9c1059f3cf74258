"""Where a run's numbers come from."""

import subprocess
from pathlib import Path

from samix.runs import provenance
from samix.runs.provenance import commit, git


def in_git(folder: Path, *words: str) -> None:
    user = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *user, *words], cwd=folder, check=True)


def test_value_commit_is_that_of_our_own_checkout(tmp_path, monkeypatch):
    file = tmp_path / "log.py"
    file.write_text("1")
    for words in (["init", "-q"], ["add", "log.py"], ["commit", "-q", "-m", "ours"]):
        in_git(tmp_path, *words)
    monkeypatch.setattr(provenance, "__file__", str(file))
    full = git("rev-parse", "HEAD", folder=tmp_path)
    assert len(full) == 40 and commit() == full[:10]
    file.write_text("2")
    assert commit() == f"{full[:10]}-dirty"


def test_value_somebody_elses_commit_is_not_ours(tmp_path, monkeypatch):
    """An environment inside another repository."""
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        in_git(tmp_path, *words)
    assert git("log", "--format=%s", folder=tmp_path) == "theirs"
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "log.py"))
    assert commit() == ""
