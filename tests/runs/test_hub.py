"""Mixers from and to the Hub, which is a server on this machine."""

from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from local_hub import COMMIT, TOKEN

import samix
from samix.runs.exporting import export_mixer
from samix.runs.hub import Address, fetch_mixer, parse_address, push_mixer


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """An exported Mixer, beside something that is nobody's business."""
    export_mixer(finished, tmp_path / "mine")
    (tmp_path / "mine" / "secret.txt").write_text("secret")
    return tmp_path / "mine"


def test_value_what_is_pushed_can_be_fetched(hub, folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert push_mixer(folder, "me/mixer", private=True) == f"{hub.address}/me/mixer"
    assert set(hub.repos["me/mixer"]) == {"mixer.safetensors", "README.md"} and hub.private["me/mixer"]
    assert 'samix.load_mixer("hf://me/mixer")' in hub.repos["me/mixer"]["README.md"].decode()
    x, y = torch.rand(4, 3, 16, 16), torch.arange(4)
    for address in ("hf://me/mixer", "hf://me/mixer@main", f"hf://me/mixer@{COMMIT}"):
        torch.manual_seed(1)
        fetched = samix.Mix(samix.load_mixer(address), classes=4)(x, y)[0]
        torch.manual_seed(1)
        assert torch.equal(fetched, samix.Mix(samix.load_mixer(folder), classes=4)(x, y)[0])


def test_value_a_file_with_its_card_beside_it(hub, finished, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    weights = export_mixer(finished, tmp_path / "tiny.safetensors").weights
    push_mixer(weights, "me/tiny")
    assert hub.repos["me/tiny"]["mixer.safetensors"] == weights.read_bytes() and not hub.private["me/tiny"]
    assert 'samix.load_mixer("hf://me/tiny")' in hub.repos["me/tiny"]["README.md"].decode()


def test_value_what_was_fetched_before_needs_no_hub(hub, folder, monkeypatch):
    hub.repos["me/mixer"] = {"mixer.safetensors": (folder / "mixer.safetensors").read_bytes()}
    path = fetch_mixer("hf://me/mixer")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert fetch_mixer("hf://me/mixer") == path


def test_value_addresses():
    assert parse_address("hf://me/my.mixer_2") == Address("me/my.mixer_2", None)
    assert parse_address("hf://me/mixer@v1.0/x") == Address("me/mixer", "v1.0/x")


@pytest.mark.parametrize(
    "address",
    [
        "hf://",
        "hf://mixer",
        "hf://a/b/c",
        "hf://../../etc/x",
        "hf://a/..",
        "hf:///b",
        "hf://a/b c",
        "hf://-a/b",
    ],
)
def test_error_names_that_are_none(address, hub):
    with pytest.raises(ValueError, match="a repository on the Hub is called owner/name"):
        samix.load_mixer(address)
    assert not hub.asked


@pytest.mark.parametrize("revision", ["", "../../x", "a b", "-x", "a/../b"])
def test_error_revisions_that_are_none(revision, hub):
    with pytest.raises(ValueError, match="a revision is a branch, a tag or a commit; got"):
        samix.load_mixer(f"hf://me/mixer@{revision}")
    assert not hub.asked


def test_error_what_the_hub_does_not_have(hub):
    hub.repos["me/empty"] = {"README.md": b"nothing"}
    with pytest.raises(OSError, match="the Hub has no repository me/none, or it is private"):
        samix.load_mixer("hf://me/none")
    with pytest.raises(OSError, match="me/empty has no mixer.safetensors: it is no Mixer of samix"):
        samix.load_mixer("hf://me/empty")
    with pytest.raises(OSError, match="me/empty has no such revision"):
        samix.load_mixer("hf://me/empty@nope")


def test_error_a_strangers_file_is_checked_like_any_other(hub):
    hub.repos["me/bad"] = {"mixer.safetensors": b"\xff" * 100}
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        samix.load_mixer("hf://me/bad")


def test_error_nobody_is_logged_in(hub, folder):
    with pytest.raises(OSError, match=r"the Hub does not let you into me/mixer \(401\): `hf auth login`"):
        push_mixer(folder, "me/mixer")


@pytest.mark.slow  # the library of the Hub tries again and again
def test_error_no_network(hub, folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    nobody = "http://127.0.0.1:9"
    monkeypatch.setattr(constants, "ENDPOINT", nobody)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", nobody + "/{repo_id}/resolve/{revision}/{filename}"
    )
    with pytest.raises(OSError, match="the Hub cannot be reached and mixer.safetensors of me/mixer was not"):
        samix.load_mixer("hf://me/mixer")
    with pytest.raises(OSError, match=r"the Hub cannot be reached \(.*\): check the network"):
        push_mixer(folder, "me/mixer")


@pytest.mark.parametrize("repo", ["mixer", "../x", "me/a/b", "https://hub/me/a"])
def test_error_repositories_to_push_to(repo, hub, folder):
    with pytest.raises(ValueError, match="a repository on the Hub is called owner/name"):
        push_mixer(folder, repo)
    assert not hub.asked


def test_error_a_run_is_not_pushed_as_it_is(hub, finished, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no .*README.md: `samix export RUN` writes"):
        push_mixer(finished, "me/mixer")
    with pytest.raises(FileNotFoundError, match="there is no .*nowhere: `samix export RUN` writes"):
        push_mixer(tmp_path / "nowhere", "me/mixer")
