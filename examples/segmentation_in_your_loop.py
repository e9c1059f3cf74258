"""Segmentation in a loop of your own: the class map of every picture is mixed by the picture's own mask.

python examples/segmentation_in_your_loop.py [steps]
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix import Mix
from samix.data import CIFAR_STATS, draw_pictures, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
CLASSES = 3
torch.manual_seed(0)


def stage(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class YourSegmenter(nn.Module):
    """Any network that turns images into one logit per class and pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.full, self.middle, self.coarse = stage(3, 16), stage(16, 32, 2), stage(32, 64, 2)
        self.deep, self.merge = stage(64, 64), stage(16 + 32 + 64, 32)
        self.classify = nn.Conv2d(32, 1 + CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        maps = [full := self.full(x), middle := self.middle(full), self.deep(self.coarse(middle))]
        sized = [F.interpolate(z, size=x.shape[2:], mode="bilinear") for z in maps]
        return self.classify(self.merge(torch.cat(sized, dim=1)))


train, test = (draw_pictures(count, classes=CLASSES, seed=seed) for count, seed in ((1500, 1), (300, 2)))
# Every pixel has a class: 0 beside the object, 1 + its shape on it.
map_train, map_test = (part.masks[:, 0] * (1 + part.labels[:, None, None]) for part in (train, test))
x_train, x_test = (normalize(part.images, *CIFAR_STATS) for part in (train, test))
model = YourSegmenter()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

mix = Mix("cutmix", prob=0.5)
for _ in range(STEPS):
    index = torch.randint(len(x_train), (40,))
    mixed = mix.mixed(x_train[index], train.labels[index])
    loss = F.cross_entropy(model(mixed.x), mixed.dense(map_train[index]))  # class indices stay indices
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    found = model.eval()(x_test).argmax(dim=1)
right = [(found[map_test == k] == k).float().mean() for k in range(1 + CLASSES)]  # every class counts alike
chance = 100 / len(right)
print(f"accuracy after {STEPS} steps: {chance * sum(right):.1f} % (chance {chance:.1f} %)")
