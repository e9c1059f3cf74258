"""Class activation maps of any network that ends in maps."""

import pytest
import timm
import torch
from torch import Tensor, nn

from samix.nn.activation import class_activation
from samix.nn.zoo import build_encoder

Y = torch.tensor([0, 3, 2])


def images(size: int = 32) -> Tensor:
    return torch.rand(3, 3, size, size, generator=torch.Generator().manual_seed(1))


def build() -> tuple[nn.Module, nn.Module, nn.Linear]:
    encoder, head = build_encoder("small-resnet", width=4), nn.Linear(32, 5)
    return nn.Sequential(encoder, head), encoder.network, head


def test_value_is_the_paper_s_map_where_a_linear_layer_classifies_the_pooled_one():
    network, body, head = build()
    body.train()
    found = class_activation(network, images(), Y)
    body.eval()
    with torch.no_grad():
        maps = body.forward_features(images())
    weight = head.weight.tolist()
    for i in range(3):
        for row in range(maps.shape[2]):
            for column in range(maps.shape[3]):
                places = maps[i, :, row, column].tolist()
                cam = sum(w * a for w, a in zip(weight[Y[i]], places, strict=True))
                assert float(found[i, row, column]) * maps[0, 0].numel() == pytest.approx(cam, abs=1e-4)


def test_value_labels_as_rows_and_as_indices_agree():
    network = build()[0]
    rows = torch.eye(5)[Y]
    torch.testing.assert_close(
        class_activation(network, images(), rows), class_activation(network, images(), Y)
    )


def test_invariant_the_network_stays_as_it_was():
    network = build()[0].train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    class_activation(network, images(), Y)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert network.training and all(p.requires_grad and p.grad is None for p in network.parameters())
    assert not any(module._forward_hooks for module in network.modules())


@pytest.mark.parametrize("grad", [True, False])
def test_gradient_the_map_has_none_in_any_mode(grad):
    with torch.set_grad_enabled(grad):
        assert not class_activation(build()[0], images(), Y).requires_grad


def test_value_maps_with_channels_last():
    options = {"img_size": 32, "window_size": 4, "patch_size": 2, "embed_dim": 12, "depths": (1, 1)}
    network = timm.create_model(
        "swin_tiny_patch4_window7_224", num_heads=(1, 2), num_classes=5, **options
    ).eval()
    found = class_activation(network, images(), Y)
    maps = network.forward_features(images()).detach()  # [B, h, w, C]
    assert found.shape == maps.shape[:3] == (3, 8, 8)
    expected = (network.head.fc.weight[Y][:, None, None] * maps).sum(dim=3) / 64
    torch.testing.assert_close(found, expected.detach(), rtol=1e-4, atol=1e-5)


def test_value_a_pooled_map_is_not_the_last_one():
    network = nn.Sequential(nn.Conv2d(3, 4, 8, 8), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 5, 1), nn.Flatten())
    assert class_activation(network, images(), Y).shape == (3, 4, 4)


@pytest.mark.parametrize("kind", ["tokens", "no maps"])
def test_error_networks_without_a_last_map(kind):
    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 5))
    tokens = nn.Sequential(build_encoder("small-vit", width=2, size=32), nn.Linear(12, 5))
    with pytest.raises(ValueError, match="class activation maps, which a network does not have"):
        class_activation(tokens if kind == "tokens" else flat, images(), Y)
