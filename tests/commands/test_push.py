"""samix push: an exported Mixer on the Hub, which is a server on this machine."""

import pytest
from local_hub import TOKEN


@pytest.fixture
def exported(call, trained, tmp_path):
    call("export", trained, "--out", tmp_path / "mine")
    return tmp_path / "mine"


def test_value_push(call, exported, hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    out = call("push", exported, "me/mixer", "--private")
    assert f"{hub.address}/me/mixer" in out and "samix.load_mixer('hf://me/mixer')" in out
    assert hub.private["me/mixer"] and len(hub.repos["me/mixer"]) == 2


def test_error_what_cannot_be_loaded_is_not_pushed(fail, exported, hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    content = (exported / "mixer.safetensors").read_bytes()
    (exported / "mixer.safetensors").write_bytes(content[:-8])
    assert "is not a readable safetensors file" in fail("push", exported, "me/mixer")
    assert not hub.asked


def test_error_a_bad_name(fail, exported, hub):
    assert "is called owner/name" in fail("push", exported, "mixer")
