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


def test_value_a_mixer_may_look_at_larger_pictures_than_in_training(call, trained, tmp_path):
    call("export", trained, "--out", (tmp_path / "large.safetensors"), "--size", "24")
    assert samix.load_mixer(tmp_path / "large.safetensors").painter.size == 24


def test_error_size(fail, trained):
    assert "--size must be at least 1, got 0" in fail("export", trained, "--size", "0")
