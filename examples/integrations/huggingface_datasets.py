"""samix with Hugging Face datasets: pictures are decoded by a transform, mixed by the collate function.

pip install datasets;  python examples/integrations/huggingface_datasets.py [steps]
"""

import sys
from typing import Any

import torch

from samix import Mix  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
import numpy as np
from datasets import ClassLabel, Dataset, Features, Image
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, RandomSampler

from samix.data import Data, ImageSet, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.manual_seed(0)
data = load_data(Data(name="digits", size=14, view="none"))


def as_dataset(part: ImageSet) -> Dataset:
    """Stands for `load_dataset("owner/name")`: PNG pictures with class labels."""
    columns = {"image": list(part.pictures.permute(0, 2, 3, 1).numpy()), "label": part.labels.tolist()}
    return Dataset.from_dict(columns, Features({"image": Image(), "label": ClassLabel(10)}))


def to_tensors(batch: dict[str, Any]) -> dict[str, Any]:
    """Decoded pictures as normalised tensors; what you do to single pictures belongs here."""
    pictures = torch.stack([torch.from_numpy(np.array(picture)) for picture in batch["image"]])
    x = normalize(pictures.permute(0, 3, 1, 2), data.mean, data.std)
    return {"image": x, "label": batch["label"]}


train, test = (as_dataset(part).with_transform(to_tensors) for part in (data.train, data.test))
convs = [nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), nn.ReLU()]
model = nn.Sequential(*convs, nn.Flatten(), nn.Linear(64 * 2 * 2, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

mix = Mix("resizemix", classes=10, prob=0.5)
drawn = RandomSampler(train, replacement=True, num_samples=50 * STEPS)
for batch in DataLoader(train, 50, sampler=drawn, collate_fn=mix.collate):
    loss = F.cross_entropy(model(batch["image"]), batch["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
everything = test[:]
with torch.no_grad():
    hits = model(everything["image"]).argmax(dim=1) == torch.tensor(everything["label"])
print(f"accuracy after {STEPS} steps: {100 * hits.float().mean():.1f} % (chance {100 / 10:.1f} %)")
