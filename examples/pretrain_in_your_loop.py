"""SAMix-I in a pre-training loop of your own: no labels, two views, your own encoder.

python examples/pretrain_in_your_loop.py [steps]    with 0 steps: the accuracy of the untrained encoder
"""

import sys

import torch
from torch import nn

from samix import SAMixI
from samix.data import Augment, Data, load_data, normalize, two_views
from samix.evaluate import extract, knn_accuracy
from samix.methods.ssl import MoCoV2

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.manual_seed(0)


def stage(inputs: int, outputs: int) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


# Any network that turns images into features [B, D] and has a layer with a map for the Mixer to read.
yours = nn.Sequential(stage(3, 16), stage(16, 32), stage(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten())
method = MoCoV2(queue=256, hidden=64, dim=64, momentum=0.99)
model = SAMixI.wrap(yours, layer="1", method=method, size=16)  # the Mixer reads the second stage

data = load_data(Data(name="digits", size=16, view="none"))
train, test, classes = data.train, data.test, len(data.train.classes)
# Grey digits, which a mirror would change: crops alone.
crop = Augment(min_scale=0.4, flip_prob=0, jitter_prob=0, grey_prob=0, blur_prob=0)

groups = [{"params": parameters} for parameters in model.parameter_groups().values()]
optimizer = torch.optim.AdamW(groups, lr=2e-3)
for step in range(STEPS):
    index = torch.randint(len(train.labels), (64,))
    views = two_views(train.pictures[index], 16, (crop, crop))  # all first views, then all second ones
    losses = model(normalize(views, data.mean, data.std), index, progress=step / STEPS)
    optimizer.zero_grad()
    losses.total.backward()
    optimizer.step()
    model.after_step(progress=step / STEPS)

# Labels come in only now: each test picture asks its 5 nearest of 100 labelled ones.
known, asked = (extract(yours, [(normalize(p.pictures, *data.stats), p.labels)]) for p in (train, test))
score = knn_accuracy(known[0][:100], known[1][:100], *asked, classes=classes, k=5)
print(f"accuracy after {STEPS} steps: {score.top1:.1f} % (chance {100 / classes:.1f} %)")
