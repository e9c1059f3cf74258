"""SAMix in a training loop of your own: wrap your model, call it for the losses, step, update.

python examples/samix_in_your_loop.py [steps]
"""

import sys

import torch
from torch import nn

from samix import SAMix
from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.manual_seed(0)


class YourClassifier(nn.Module):
    """Any network that turns images into logits and has a layer with a map."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stage1, self.stage2, self.stage3 = self.stage(3, 16), self.stage(16, 32), self.stage(32, 64)
        self.classify = nn.Linear(64, classes)

    def stage(self, inputs: int, outputs: int) -> nn.Module:
        conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classify(self.stage3(self.stage2(self.stage1(x))).mean(dim=(2, 3)))


data = load_data(Data(name="digits", size=16, view="none"))
train, test, classes = data.train, data.test, len(data.train.classes)
yours = YourClassifier(classes)

# Name the layer whose map the Mixer reads.
model = SAMix.wrap(yours, "stage2", classes, size=16)

groups = [{"params": yours.parameters()}, {"params": model.mixer.parameters(), "lr": 0.1}]
optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9, weight_decay=5e-4)
for step in range(STEPS):
    index = torch.randint(len(train.labels), (50,))
    x, y = normalize(train.pictures[index], data.mean, data.std), train.labels[index]
    losses = model(x, y, progress=step / STEPS)
    optimizer.zero_grad()
    losses.total.backward()
    optimizer.step()
    model.after_step(progress=step / STEPS)

yours.eval()  # your own object holds the trained weights
with torch.no_grad():
    hits = yours(normalize(test.pictures, data.mean, data.std)).argmax(dim=1) == test.labels
print(f"accuracy after {STEPS} steps: {100 * hits.float().mean():.1f} % (chance {100 / classes:.1f} %)")
