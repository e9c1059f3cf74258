"""samix with Hugging Face Accelerate: mix what the prepared loader gives, on its device.

pip install accelerate;  python examples/integrations/accelerate_loop.py [steps]
"""

import sys

import torch

from samix import Mix  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
accelerator = Accelerator(gradient_accumulation_steps=2)
set_seed(0, device_specific=True)  # processes must not draw the same lam and the same partners

data = load_data(Data(name="digits", size=14, view="none"))
train, test = (TensorDataset(normalize(p.pictures, *data.stats), p.labels) for p in (data.train, data.test))
drawn = RandomSampler(train, replacement=True, num_samples=2 * 50 * STEPS)
convs = [nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), nn.ReLU()]
model = nn.Sequential(*convs, nn.Flatten(), nn.Linear(64 * 2 * 2, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
loaders = DataLoader(train, 50, sampler=drawn), DataLoader(test, 50)
model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, *loaders)

mix = Mix(["mixup", "cutmix"], classes=10)
for batch in train_loader:
    with accelerator.accumulate(model):
        x, y = mix(*batch)
        accelerator.backward(F.cross_entropy(model(x), y))
        optimizer.step()
        optimizer.zero_grad()

model.eval()
hits = []
with torch.no_grad():
    for x, y in test_loader:
        hits.append(accelerator.gather_for_metrics(model(x).argmax(dim=1) == y))
accuracy = 100 * torch.cat(hits).float().mean()
accelerator.print(f"accuracy after {STEPS} steps: {accuracy:.1f} % (chance {100 / 10:.1f} %)")
