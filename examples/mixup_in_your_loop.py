"""A hand-made mixup in a training loop of your own: mixed images, soft labels, any loss that takes them.

python examples/mixup_in_your_loop.py [steps]
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

from samix import CutMix
from samix.data.datasets import Data, load_data
from samix.data.views import normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.manual_seed(0)

data = load_data(Data(name="digits", size=16, view="none"))
x_train, x_test = (normalize(part.pictures, data.mean, data.std) for part in (data.train, data.test))
convs = [nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), nn.ReLU()]
model = nn.Sequential(*convs, nn.Flatten(), nn.LazyLinear(10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

policy = CutMix(alpha=1.0)  # or MixUp(), or MIXUPS["cutmix"]()
for _ in range(STEPS):
    index = torch.randint(len(x_train), (50,))
    x, y = x_train[index], data.train.labels[index]
    mixed = policy(x, policy.draw(len(x)))  # x and y stay as they are
    loss = F.cross_entropy(model(mixed.x), mixed.soft_labels(y, classes=10))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    hits = model(x_test).argmax(dim=1) == data.test.labels
print(f"accuracy after {STEPS} steps: {100 * hits.float().mean():.1f} % (chance {100 / 10:.1f} %)")
