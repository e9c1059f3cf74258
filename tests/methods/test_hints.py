"""What methods supply to policies: right values, only what was asked for, and nothing left behind."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from samix.core.shapes import Stats
from samix.methods.hints import Supplier, input_saliency, pixels_of, teacher_of
from samix.nn.activation import class_activation

STATS = Stats((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))


class Counting(nn.Module):
    """A small network with batch norm that counts its passes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5)
        )
        self.head, self.passes = nn.Linear(4, 5), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        return self.head(self.body(x).mean(dim=(2, 3)))


@pytest.fixture
def network() -> Counting:
    return Counting().train()


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(4, 3, 10, 8), torch.tensor([0, 4, 2, 1])


def test_value_saliency_is_the_root_mean_square_of_the_input_gradient(network, batch):
    x, y = batch
    found = input_saliency(network, x, y)
    network.eval()
    for i in range(4):
        image = x[i : i + 1].clone().requires_grad_()
        F.cross_entropy(network(image), y[i : i + 1]).backward()
        expected = (image.grad[0] ** 2).mean(dim=0).sqrt()
        torch.testing.assert_close(found[i], expected)


def test_value_saliency_takes_soft_labels(network, batch):
    x, y = batch
    rows = F.one_hot(y, 5).float()
    for labels in (rows, rows.long(), rows.bool(), y.int()):
        torch.testing.assert_close(input_saliency(network, x, y), input_saliency(network, x, labels))


def test_gradient_saliency_leaves_nothing_behind(network, batch):
    state = {key: value.clone() for key, value in network.state_dict().items()}
    with torch.no_grad():
        saliency = input_saliency(network, *batch)
    assert not saliency.requires_grad and batch[0].grad is None
    assert all(p.grad is None and p.requires_grad for p in network.parameters())
    assert all(torch.equal(state[key], value) for key, value in network.state_dict().items())
    assert all(module.training for module in network.modules())


def test_value_pixels_undo_the_normalisation():
    pixels = torch.rand(2, 3, 4, 4)
    x = (pixels - torch.tensor(STATS.mean).view(3, 1, 1)) / torch.tensor(STATS.std).view(3, 1, 1)
    torch.testing.assert_close(pixels_of(x, STATS), pixels)
    assert torch.equal(pixels_of(pixels, None), pixels)


def test_error_pixels_of_normalised_images_need_the_statistics():
    with pytest.raises(ValueError, match=r"lie in \[-1.00, 1.00\]: pass mean= and std="):
        pixels_of(torch.linspace(-1, 1, 48).view(1, 3, 4, 4), None)


def test_value_only_what_is_declared_is_computed(network, batch):
    supply = Supplier(network, stats=STATS)
    assert all(hint is None for hint in supply((), *batch)) and network.passes == 0
    hints = supply(("pixels",), *batch)
    assert hints.pixels is not None and network.passes == 0
    hints = supply(("saliency", "pixels"), *batch)
    assert hints.saliency is not None and hints.attention is None and network.passes == 1


def test_gradient_a_teacher_passes_gradients_to_the_images_only(network, batch):
    x = batch[0].requires_grad_()
    teacher_of(network)(x).sum().backward()
    assert x.grad is not None and all(p.grad is None for p in network.parameters())
    assert network.training


def test_error_without_a_network_the_need_is_named(batch):
    named = {"activation": "class activation maps"}
    for need in ("saliency", "attention", "teacher", "activation"):
        with pytest.raises(ValueError, match=f"needs {named.get(need, need)}.*model=your_model"):
            Supplier()((need,), *batch)


def test_error_attention_of_a_network_without_it(network, batch):
    with pytest.raises(ValueError, match="needs attention, which"):
        Supplier(network)(("attention",), *batch)


def test_value_class_activation_maps_are_the_teachers_where_there_is_one(network, batch):
    teacher, (x, y) = Counting(), batch
    for supply, asked in ((Supplier(network), network), (Supplier(network, teacher=teacher), teacher)):
        torch.testing.assert_close(supply(("activation",), x, y).activation, class_activation(asked, x, y))
