"""Any mixup in a training loop of your own: two lines more, and the loop stays as it is.

python examples/mixup_in_your_loop.py [steps]
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

from samix import Mix, mixed_accuracy
from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.manual_seed(0)

data = load_data(Data(name="digits", size=16, view="none"))
x_train, x_test = (normalize(part.pictures, data.mean, data.std) for part in (data.train, data.test))
convs = [nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), nn.ReLU()]
model = nn.Sequential(*convs, nn.Flatten(), nn.LazyLinear(10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

mix = Mix({"mixup": 0.5, "cutmix": 0.5}, classes=10)  # or any name of samix.MIXUPS
for step in range(STEPS):
    index = torch.randint(len(x_train), (50,))
    x, y = mix(x_train[index], data.train.labels[index])  # y becomes soft, [50, 10]
    outputs = model(x)
    loss = F.cross_entropy(outputs, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        seen = mixed_accuracy(outputs, y)
        print(f"step {step}: loss {loss:.2f}, accuracy {seen.weighted:.0f} of {seen.best:.0f} %")

model.eval()
with torch.no_grad():
    hits = model(x_test).argmax(dim=1) == data.test.labels
print(f"accuracy after {STEPS} steps: {100 * hits.float().mean():.1f} % (chance {100 / 10:.1f} %)")
