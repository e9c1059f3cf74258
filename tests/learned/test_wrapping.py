"""SAMix around networks of other libraries, as they come: their outputs, tokens, channels and sizes."""

from collections import OrderedDict
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.models import VisionTransformer

from samix import Mix, SAMix
from samix.learned import SAMixI
from samix.learned.losses import eta_balanced, pbce
from samix.losses.classification import LabelLoss
from samix.nn.conventions import count_prefix_tokens, image_channels, patch_grid

CLASSES = 5


@dataclass
class Output(OrderedDict):
    """As transformers' ModelOutput: a dictionary whose values are attributes too."""

    logits: Tensor


class Layer(nn.Module):
    """As transformers' layers were for long: the tokens in a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Linear(8, 8)

    def forward(self, tokens: Tensor) -> tuple[Tensor]:
        return (tokens + self.mlp(tokens).tanh(),)


class Embeddings(nn.Module):
    """Patches of 4 pixels behind a class token and, if there are any, registers."""

    def __init__(self, channels: int, registers: int) -> None:
        super().__init__()
        self.patches, self.cls_token = nn.Conv2d(channels, 8, 4, 4), nn.Parameter(torch.randn(1, 1, 8))
        if registers:
            self.register_tokens = nn.Parameter(torch.randn(1, registers, 8))

    def forward(self, pixel_values: Tensor) -> Tensor:
        tokens = self.patches(pixel_values).flatten(2).mT
        prefix = [part.expand(len(tokens), -1, -1) for name, part in self.named_parameters(recurse=False)]
        return torch.cat([*prefix, tokens], dim=1)


class ImageClassification(nn.Module):
    """The interface of transformers' ViTForImageClassification, without transformers."""

    def __init__(self, channels: int = 3, registers: int = 0) -> None:
        super().__init__()
        self.embeddings, self.layer = Embeddings(channels, registers), nn.ModuleList([Layer(), Layer()])
        self.classifier = nn.Linear(8, CLASSES)

    def forward(self, pixel_values: Tensor | None = None, labels: Tensor | None = None) -> Output:
        tokens = self.embeddings(pixel_values)
        for layer in self.layer:
            (tokens,) = layer(tokens)
        return Output(logits=self.classifier(tokens[:, 0] + tokens.mean(dim=1)))


def batch(channels: int = 3, size: tuple[int, int] = (16, 16)) -> tuple[Tensor, Tensor]:
    return torch.randn(6, channels, *size), torch.arange(6) % CLASSES


def train_once(model: SAMix, x: Tensor, y: Tensor) -> None:
    model.train()(x, y, 0.5).total.backward()
    assert all(p.grad is not None for p in model.mixer.parameters())
    assert all(p.grad is not None for p in model.method.encoder.network.parameters())


@pytest.mark.parametrize("registers", [0, 3])
def test_value_a_model_of_transformers_needs_no_prefix_tokens(registers):
    network, (x, y) = ImageClassification(registers=registers), batch()
    model = SAMix.wrap(network, "layer.0", CLASSES, size=16)
    expected = network.layer[0](network.embeddings(x))[0][:, 1 + registers :].mT.unflatten(2, (4, 4))
    torch.testing.assert_close(model.maps(x), expected)
    train_once(model, x, y)
    torch.testing.assert_close(model.eval()(x), network(x).logits)


def test_value_a_vit_of_torchvision_needs_no_prefix_tokens():
    network, (x, y) = VisionTransformer(16, 4, 2, 2, 12, 16, num_classes=CLASSES), batch()
    nn.init.normal_(network.heads.head.weight)
    model = SAMix.wrap(network, "encoder.layers.encoder_layer_0", CLASSES, size=16)
    assert model.maps(x).shape == (6, 12, 4, 4) and count_prefix_tokens(network) == 1
    train_once(model, x, y)


def test_value_pictures_that_are_not_square():
    network, (x, y) = ImageClassification(), batch(size=(16, 24))
    model = SAMix.wrap(network, "layer.1", CLASSES, size=(16, 24))
    assert model.maps(x).shape == (6, 8, 4, 6)
    train_once(model, x, y)


@pytest.mark.parametrize("channels", [1, 4])
def test_value_networks_with_other_channels(channels):
    network, (x, y) = ImageClassification(channels), batch(channels)
    assert image_channels(network) == channels
    train_once(SAMix.wrap(network, "layer.0", CLASSES, size=16), x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_value_one_hot_labels_train_as_indices_do(dtype):
    x, y = batch()
    found = []
    for labels in (y, F.one_hot(y, CLASSES).to(dtype)):
        torch.manual_seed(0)
        model = SAMix.wrap(ImageClassification(), "layer.0", CLASSES, size=16)
        found.append(model(x, labels, 0.5))
    torch.testing.assert_close(found[1].encoder, found[0].encoder)
    torch.testing.assert_close(found[1].mixer, found[0].mixer)


def test_value_soft_labels_weigh_the_losses_of_their_classes():
    """Cross-entropy is linear in the label: a half of two classes is the mean of both losses."""
    (x, y), logits = batch(), torch.randn(6, CLASSES)
    mixed, other = Mix("mixup", CLASSES).mixed(x, y), (y + 1) % CLASSES
    rows = (F.one_hot(y, CLASSES) + F.one_hot(other, CLASSES)) / 2
    loss = LabelLoss(CLASSES)
    expected = (loss.mixed(logits, mixed, y) + loss.mixed(logits, mixed, other)) / 2
    torch.testing.assert_close(loss.mixed(logits, mixed, rows), expected)
    parts = eta_balanced(logits, rows, mixed.pairing, eta=0.5)
    torch.testing.assert_close(parts.globally, expected)
    same = pbce(logits, rows[:1].expand(6, -1), mixed.pairing)
    assert (same == 0).all(), "a pair of one label asks for nothing"


def test_value_in_eval_mode_the_model_predicts():
    network, x = ImageClassification(), batch()[0]
    model = SAMix.wrap(network, "layer.0", CLASSES, size=16)
    assert torch.equal(model.eval()(x), network(x).logits)
    with pytest.raises(ValueError, match=r"training needs labels.*In eval mode, model\(x\) predicts"):
        model.train()(x)


def test_value_mixups_ask_models_of_transformers_for_their_saliency():
    network, (x, y) = ImageClassification(), batch()
    for name in ("puzzlemix", "supermix"):
        mixed, rows = Mix(name, CLASSES, model=network)(x.sigmoid(), y)
        assert mixed.shape == x.shape and rows.shape == (6, CLASSES)


def test_value_warns_of_a_map_without_places():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, CLASSES))
    with pytest.warns(UserWarning, match="layer '1' gives a map of 1 x 1 .*Name an earlier layer"):
        SAMix.wrap(network, "1", CLASSES, size=16)


def test_value_without_labels_a_network_is_looked_at_as_with_labels(unchecked_shapes):
    assert SAMixI.wrap(ImageClassification(), "layer.0", size=16).maps(batch()[0]).shape == (6, 8, 4, 4)
    with pytest.raises(ValueError, match="the network must be an nn.Module; got str"):
        SAMixI.wrap("resnet18", "layer3")
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.warns(UserWarning, match="gives a map of 1 x 1"):
        SAMixI.wrap(pooled, "1", size=16)


@pytest.mark.parametrize(
    ("network", "layer", "message"),
    [
        ("resnet18", "layer3", "the network must be an nn.Module; got str"),
        (ImageClassification(), "layer.7", "has no layer 'layer.7'"),
        (ImageClassification(), "classifier", r"needs a layer with a spatial map.*gives \[1, 5\]"),
    ],
)
def test_error_networks_that_cannot_be_wrapped(unchecked_shapes, network, layer, message):
    with pytest.raises(ValueError, match=message):
        SAMix.wrap(network, layer, CLASSES, size=16)


def test_error_labels_in_a_list(unchecked_shapes):
    model = SAMix.wrap(ImageClassification(), "layer.0", CLASSES, size=16)
    with pytest.raises(ValueError, match=r"labels must be a tensor; got list. Write torch.as_tensor\(y\)"):
        model(batch()[0], [0, 1, 2, 3, 4, 0])


@pytest.mark.parametrize(
    ("count", "size", "grid"),
    [
        (16, (16, 16), (4, 4)),
        (24, (16, 24), (4, 6)),
        (17, (16, 16), None),
        (12, (16, 16), None),
        (1, (8, 8), (1, 1)),
    ],
)
def test_value_the_grid_of_patches(count, size, grid):
    assert patch_grid(count, size) == grid
