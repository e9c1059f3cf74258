"""Encoders out of run folders, and folders that do not hold one."""

import json
import shutil
import stat
from pathlib import Path

import pytest
import timm
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from samix.core.shapes import Stats
from samix.data.datasets import Data
from samix.engine.export import export_weights
from samix.nn.zoo import Network
from samix.runs.files import write_text
from samix.runs.weights import load_encoder, save_weights

WEIGHTS = "encoder.safetensors"

STATS = Stats((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy of a finished run to break."""
    for name in (WEIGHTS, "config.yaml"):
        shutil.copy(finished / name, tmp_path)
    return tmp_path


def rewrite(folder: Path, about: dict | None, tensors: dict[str, Tensor] | None = None) -> None:
    tensors = tensors or load_file(folder / WEIGHTS)
    metadata = None if about is None else {"samix": json.dumps(about)}
    save_file(tensors, folder / WEIGHTS, metadata=metadata)


ABOUT = {"encoder": {"name": "small-resnet", "width": 4, "drop_path": 0.0}, "size": 16, "classes": ["a"]}


def test_value_encoder_of_a_run(finished):
    saved = load_encoder(finished)
    trained = torch.load(finished / "last.ckpt", weights_only=True)["model"]
    for name, value in saved.encoder.network.state_dict().items():
        assert torch.equal(value, trained[f"method.encoder.network.{name}"])
    assert saved.network == Network(width=4)
    assert saved.size == 16 and len(saved.classes) == 12
    assert saved.data == Data(size=16, train_pictures=24, test_pictures=12)


@pytest.mark.parametrize("name", ["small-vit", "resnet18-cifar"])
def test_value_any_encoder(name, tiny, tmp_path):
    recipe = tiny("plain", encoder=Network(name=name, width=4))
    model, x = recipe.build(3).eval(), torch.randn(2, 3, 16, 16)
    export_weights(tmp_path, recipe, model, ("a", "b", "c"), STATS)
    saved = load_encoder(tmp_path)
    with torch.no_grad():
        assert torch.equal(saved.encoder.eval()(x), model.encoder(x))
    assert saved.classes == ("a", "b", "c")


def test_value_three_lines_give_a_plain_network(tiny, tmp_path):
    recipe = tiny("plain", encoder=Network(name="resnet18"))
    model, x = recipe.build(3).eval(), torch.randn(2, 3, 64, 64)
    export_weights(tmp_path, recipe, model, ("a", "b", "c"), STATS)
    plain = timm.create_model("resnet18", num_classes=0)
    plain.load_state_dict(load_file(tmp_path / WEIGHTS))
    plain.eval()
    with torch.no_grad():
        assert torch.equal(plain(x), load_encoder(tmp_path).encoder.eval()(x))


def test_value_without_a_config_the_data_is_unknown(folder):
    (folder / "config.yaml").unlink()
    assert load_encoder(folder).data is None


def test_error_a_folder_without_weights(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"has no encoder.safetensors, which a run writes when it ends"
    ):
        load_encoder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not weights at all", b"\xff" * 100])
def test_error_a_file_that_is_not_safetensors(content, tmp_path):
    (tmp_path / WEIGHTS).write_bytes(content)
    with pytest.raises(ValueError, match="encoder.safetensors is not a readable safetensors file"):
        load_encoder(tmp_path)


def test_error_a_file_that_was_cut_off(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        load_encoder(folder)


def test_error_weights_of_another_library(folder):
    rewrite(folder, None)
    with pytest.raises(ValueError, match="was not written by samix"):
        load_encoder(folder)


@pytest.mark.parametrize("text", ["{", "[1]", "3", "[" * 100_000])
def test_error_headers_that_are_no_object(text, folder):
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, metadata={"samix": text})
    with pytest.raises(
        ValueError, match="the description in the header of .* (is not readable JSON|must be one)"
    ):
        load_encoder(folder)


def test_error_weights_that_do_not_fit(folder):
    rewrite(folder, ABOUT | {"encoder": {"name": "small-resnet", "width": 8}})
    with pytest.raises(ValueError, match=r"do not fit Network\(name='small-resnet', width=8"):
        load_encoder(folder)


def test_error_weights_that_are_missing(folder):
    tensors = load_file(folder / WEIGHTS)
    tensors.popitem()
    rewrite(folder, ABOUT, tensors)
    with pytest.raises(ValueError, match="do not fit"):
        load_encoder(folder)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        (
            {"encoder": {"name": "small-resnt"}},
            r"unknown encoder 'small-resnt'. Did you mean 'small-resnet'\?",
        ),
        ({"encoder": {"depth": 4}}, "depth"),
        ({"size": None}, "lacks size"),
        ({"size": [8]}, "size must be a whole number of at least 0, got list of 1"),
        ({"classes": []}, "classes must be a list of names, got list of 0"),
        ({"mean": "grey"}, "mean must be three numbers, got 'grey'"),
        ({"encoder": {"name": "small-resnet", "width": 10**6}}, "cannot be built: its encoder has"),
        ({"encoder": {"name": "small-resnet", "width": "wide"}}, "cannot be built"),
        ({"encoder": {"name": 7}}, "cannot be built"),
    ],
)
def test_error_descriptions(about, words, folder):
    rewrite(folder, ABOUT | about)
    with pytest.raises(ValueError, match=words):
        load_encoder(folder)


@pytest.mark.parametrize(
    "text", ["epochs: 3\n", "data: {sise: 3}\n", "data: [1\n", "data: {size: 1}\n", "- 1\n"]
)
def test_error_configs(text, folder):
    (folder / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match="config.yaml does not hold the data of a run"):
        load_encoder(folder)


# ------------------------------------------------------------ any weights


def test_error_full_disk_while_exporting_weights(tmp_path, monkeypatch):
    """safetensors has an exception of its own; a limit on file sizes makes it fail for real."""
    import resource
    import signal

    path = tmp_path / "encoder.safetensors"
    save_weights(path, {"w": torch.zeros(3)}, {})
    before = path.read_bytes()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match=r"could not write .*encoder.safetensors"):
            save_weights(path, {"w": torch.zeros(100_000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["encoder.safetensors"]


def test_value_weights_carry_their_description(tmp_path):
    path = tmp_path / "w.safetensors"
    layer = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    save_weights(
        path,
        {f"layer.{name}": tensor for name, tensor in layer.state_dict().items()},
        {"classes": ["a", "b"]},
    )
    with safe_open(path, "pt") as file:
        assert set(file.keys()) == {"layer.weight", "layer.bias"}
        assert torch.equal(file.get_tensor("layer.weight"), layer.weight)
        assert json.loads(file.metadata()["samix"]) == {"classes": ["a", "b"]}


def test_value_weights_can_be_read_by_whoever_may_read_the_folder(tmp_path):
    write_text(tmp_path / "a.txt", "text")
    save_weights(tmp_path / "w.safetensors", {"w": torch.zeros(1)}, {})
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.txt", "w.safetensors")}
    assert len(modes) == 1
