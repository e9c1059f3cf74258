"""Exported classifiers: of a run, in samix and in plain timm, and folders that hold none."""

import copy
import json
import pickle
import shutil

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from timm.data import create_transform, resolve_model_data_config
from torch import nn

import samix
from samix.core.shapes import Stats
from samix.data import read_picture, views
from samix.data.datasets import Data, load_data
from samix.engine.export import export_weights
from samix.methods.supervised import Objective
from samix.nn.from_timm import timm_network
from samix.nn.plain_timm import whole_weights
from samix.nn.zoo import Network
from samix.runs.classifier import load_classifier
from samix.runs.for_timm import Seen, crop_share, for_timm

STATS = Stats((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
CLASSES = ("a cat", "dög", 'the "rest", all')


def write_pictures(folder, sizes=((40, 30), (25, 50), (32, 32))) -> list:
    folder.mkdir(exist_ok=True)
    random, paths = np.random.default_rng(0), []
    for k, (width, height) in enumerate(sizes):
        paths.append(folder / f"{k}.png")
        Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(paths[-1])
    return paths


def export(tiny, folder, name: str, policy: str = "cutmix", size: int = 32, **changes):
    recipe = tiny(policy, encoder=Network(name=name), data=Data(size=size), **changes)
    model = recipe.build(3).eval()
    with torch.no_grad():
        for norm in model.modules():
            if isinstance(norm, nn.BatchNorm2d):  # statistics as after training, not 0 and 1
                norm.running_mean.normal_(std=0.1)
                norm.running_var.uniform_(0.5, 1.5)
    export_weights(folder, recipe, model, CLASSES, STATS)
    return model


# ------------------------------------------------------------ in plain timm


@pytest.mark.parametrize("name", ["resnet18", "small-vit", "vit-s-moco"])
def test_value_plain_timm_gives_our_logits(name, tiny, tmp_path):
    model, x = export(tiny, tmp_path, name), torch.randn(2, 3, 32, 32)
    plain = timm.create_model(f"local-dir:{tmp_path / 'classifier'}", pretrained=True).eval()
    with torch.no_grad():
        ours = model.heads(x)["mix_q"]
        torch.testing.assert_close(plain(x), ours, rtol=0, atol=1e-6)
        torch.testing.assert_close(load_classifier(tmp_path)(x), ours, rtol=0, atol=1e-6)
    assert ours.std() > 1e-3
    assert plain.num_classes == 3 and tuple(plain.pretrained_cfg["label_names"]) == CLASSES


@pytest.mark.parametrize("name", ["efficientnet_b0", "convnext_atto", "mobilenetv3_small_050"])
def test_value_any_network_of_timm_with_one_last_layer(name, tmp_path):
    network, x = timm_network(name, drop_path_rate=0.1).eval(), torch.randn(2, 3, 64, 64)
    head = nn.Linear(network(x).shape[1], 3)
    (tmp_path / "config.json").write_text(json.dumps(for_timm(network, head, name, Seen(CLASSES, STATS, 64))))
    save_file(whole_weights(network, head), tmp_path / "model.safetensors")
    plain = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
    with torch.no_grad():
        torch.testing.assert_close(plain(x), head(network(x)), rtol=0, atol=1e-6)


def test_value_checkpoint_path_works_too(tiny, tmp_path):
    model, x = export(tiny, tmp_path, "resnet18", "samix"), torch.randn(2, 3, 32, 32)
    weights = tmp_path / "classifier" / "model.safetensors"
    plain = timm.create_model("resnet18", num_classes=3, checkpoint_path=weights).eval()
    with torch.no_grad():
        torch.testing.assert_close(plain(x), model.method.logits(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["small-resnet", "resnet18-cifar"])
def test_value_other_networks_are_for_samix_and_say_so(name, tiny, tmp_path, read_json):
    model, x = export(tiny, tmp_path, name), torch.randn(2, 3, 32, 32)
    about = read_json(tmp_path / "classifier" / "config.json")
    assert about["architecture"] == f"samix/{name}" and "only samix.load_classifier" in about["note"]
    with pytest.raises(RuntimeError, match=f"Unknown model .samix/{name}."):
        timm.create_model(f"local-dir:{tmp_path / 'classifier'}", pretrained=True)
    with torch.no_grad():
        assert torch.equal(load_classifier(tmp_path)(x), model.heads(x)["mix_q"])


@pytest.mark.parametrize("view", [{}, {"test_resize": 36}, {"test_resize": 37}, {"test_zoom": 1.3}], ids=str)
def test_value_timm_sees_pictures_as_we_do(view, tiny, tmp_path):
    data = Data(size=32, **view)
    recipe = tiny("plain", encoder=Network(name="resnet18"), data=data)
    export_weights(tmp_path, recipe, recipe.build(3), CLASSES, STATS)
    plain = timm.create_model(f"local-dir:{tmp_path / 'classifier'}", pretrained=True)
    transform = create_transform(**resolve_model_data_config(plain), is_training=False)
    paths = write_pictures(tmp_path / "pictures", ((60, 45), (48, 90)))
    theirs = torch.stack([transform(Image.open(path).convert("RGB")) for path in paths])
    ours = load_classifier(tmp_path).images(paths)
    tested = views.normalize(views.test_view(data)([read_picture(path) for path in paths]), *STATS)
    assert torch.allclose(ours, tested, atol=1e-5)
    assert theirs.shape == ours.shape
    assert (theirs - ours).abs().max() < 3 / 255 / 0.2  # PIL rounds between its two passes


def test_value_crop_share_gives_the_resize_back():
    for size in (8, 32, 96, 224, 299):
        for resize in range(size, 2 * size):
            assert int(np.floor(size / crop_share(size, resize))) == resize
    assert crop_share(224, None) == 1.0 and crop_share(224, 256) == 0.875


def test_value_exporting_leaves_no_trace(tiny, tmp_path):
    recipe = tiny("plain", encoder=Network(name="resnet18"))
    model = recipe.build(3).train()
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    export_weights(tmp_path, recipe, model, CLASSES, STATS)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(module.training for module in model.modules()) and torch.equal(state, torch.get_rng_state())
    assert all(parameter.requires_grad for parameter in model.parameters())


# ------------------------------------------------------------ in samix


def test_value_classifier_of_a_run_tests_as_the_run_did(finished, read_json):
    classifier, split = samix.load_classifier(finished), load_data(Data(size=16, test_pictures=12))
    probabilities = classifier.predict(split.test.pictures, batch=5)
    assert probabilities.shape == (12, 12) and not classifier.training
    torch.testing.assert_close(probabilities.sum(dim=1), torch.ones(12))
    right = (probabilities.argmax(dim=1) == split.test.labels).float().mean()
    assert 100 * right == pytest.approx(read_json(finished / "summary.json")["last"], abs=1e-3)
    assert classifier.classes == split.train.classes


def test_value_the_mixed_head_is_the_one(tiny, tmp_path):
    model = export(tiny, tmp_path, "small-resnet", "samix", objective=Objective(clean_weight=1.0))
    weights = load_file(tmp_path / "classifier" / "model.safetensors")
    assert torch.equal(weights["head.weight"], model.method.head.weight)
    assert not torch.equal(weights["head.weight"], model.method.clean_head.weight)


def test_value_files_and_tensors_of_any_size(tiny, tmp_path):
    export(tiny, tmp_path, "small-resnet")
    classifier, paths = load_classifier(tmp_path / "classifier"), write_pictures(tmp_path / "pictures")
    tensors = [torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1) for path in paths]
    found = classifier.predict(paths)
    assert torch.equal(classifier.predict([str(path) for path in paths]), found)
    assert torch.equal(classifier.predict(tensors), found)
    for one in (paths[0], str(paths[0]), tensors[0]):
        torch.testing.assert_close(classifier.predict(one), found[:1])
    expected = views.normalize(views.test_view(Data(size=32))(tensors), *STATS)
    assert torch.equal(classifier.images(paths), expected)
    assert classifier.predict([]).shape == (0, 3)


def test_value_the_likeliest_classes_by_name(tiny, tmp_path):
    export(tiny, tmp_path, "small-resnet")
    rows = load_classifier(tmp_path).best(torch.tensor([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]]), top=2)
    assert [[guess.name for guess in row] for row in rows] == [
        ["dög", 'the "rest", all'],
        ["a cat", 'the "rest", all'],
    ]
    assert [guess.prob for guess in rows[0]] == pytest.approx([0.5, 0.3])
    assert len(load_classifier(tmp_path).best(torch.tensor([[0.2, 0.5, 0.3]]), top=9)[0]) == 3


def test_value_a_classifier_can_be_pickled(tiny, tmp_path):
    export(tiny, tmp_path, "resnet18")
    classifier, x = load_classifier(tmp_path), torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(pickle.loads(pickle.dumps(classifier))(x), classifier(x))


# ------------------------------------------------------------ what is refused


@pytest.mark.usefixtures("unchecked_shapes")
def test_error_what_is_no_picture(tiny, tmp_path):
    export(tiny, tmp_path, "small-resnet")
    classifier = load_classifier(tmp_path)
    with pytest.raises(ValueError, match=r"uint8 \[3, H, W\], got torch.float32 \[3, 32, 32\].*classifier"):
        classifier.predict(torch.rand(2, 3, 32, 32))
    with pytest.raises(ValueError, match=r"got torch.uint8 \[1, 32, 32\]"):
        classifier.predict([torch.zeros(1, 32, 32, dtype=torch.uint8)])


def test_error_a_folder_that_is_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing is not a run folder"):
        load_classifier(tmp_path / "nothing")


def test_error_an_unfinished_run(write_run):
    with pytest.raises(FileNotFoundError, match=r"no classifier/model.safetensors.*when it ends"):
        load_classifier(write_run())


def test_error_a_pretraining(write_run):
    with pytest.raises(ValueError, match="is a pre-training and has no classifier"):
        load_classifier(write_run(settings={"method": {"name": "simclr"}}))


def test_error_weights_that_do_not_fit(finished, tmp_path):
    shutil.copytree(finished / "classifier", tmp_path / "classifier")
    path = tmp_path / "classifier" / "model.safetensors"
    tensors = load_file(path)
    about = json.loads((tmp_path / "classifier" / "config.json").read_text())["samix"]
    save_file(tensors, path, metadata={"samix": json.dumps(about | {"classes": ["a"]})})
    with pytest.raises(ValueError, match="do not fit"):
        load_classifier(tmp_path)
    del about["mean"]
    save_file(tensors, path, metadata={"samix": json.dumps(about)})
    with pytest.raises(ValueError, match="safetensors lacks mean"):
        load_classifier(tmp_path)
