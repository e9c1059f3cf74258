"""samix export: a Mixer and its card."""

import samix


def test_value_export(call, trained, tmp_path):
    out = call("export", trained, "--out", tmp_path / "mine", "--half", "--license", "mit")
    assert str(tmp_path / "mine" / "mixer.safetensors") in out and "README.md" in out
    assert samix.load_mixer(tmp_path / "mine").needs == ("pixels",)
    assert "license: mit" in (tmp_path / "mine" / "README.md").read_text()


def test_error_no_run(fail, tmp_path):
    assert "nowhere is not a run folder" in fail("export", "nowhere")
    assert "has no mixer.safetensors" in fail("export", tmp_path)
