"""A timm training script with samix in the place of `timm.data.Mixup`, here mixing hidden layers.

python examples/timm_script.py [steps]
"""

import sys

import torch

from samix import Mix  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
import timm
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 120
torch.manual_seed(0)

data = load_data(Data(name="digits", size=32, view="none"))
x_train, x_test = (normalize(part.pictures, data.mean, data.std) for part in (data.train, data.test))
model = timm.create_model("resnet10t", num_classes=10)
optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3, weight_decay=0.05)
scheduler = CosineLRScheduler(optimizer, t_initial=STEPS, lr_min=1e-5)
criterion = SoftTargetCrossEntropy()

# timm.data.Mixup(mixup_alpha=1.0, label_smoothing=0.1, num_classes=10) would be
#     mix = Mix.timm(mixup_alpha=1.0, label_smoothing=0.1, num_classes=10);  x, y = mix(x, y)
# and `forward` works for every policy, also for those that mix inside the model:
mix = Mix("manifoldmix", classes=10, smoothing=0.1)
for step in range(STEPS):
    index = torch.randint(len(x_train), (32,))
    outputs, y = mix.forward(model, x_train[index], data.train.labels[index])
    loss = criterion(outputs, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step(step + 1)

model.eval()
with torch.no_grad():
    hits = torch.cat([model(x) for x in x_test.split(150)]).argmax(dim=1) == data.test.labels
print(f"accuracy after {STEPS} steps: {100 * hits.float().mean():.1f} % (chance {100 / 10:.1f} %)")
