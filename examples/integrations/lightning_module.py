"""samix in a LightningModule: one line in `training_step`.

pip install lightning;  python examples/integrations/lightning_module.py [steps]
"""

import sys

import torch

from samix import Mix, mixed_accuracy  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
import lightning
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        convs = [nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), nn.ReLU()]
        self.model = nn.Sequential(*convs, nn.Flatten(), nn.Linear(64 * 2 * 2, 10))
        self.mix = Mix("fmix", classes=10, mode="elem", off_epoch=8)

    def on_train_epoch_start(self) -> None:
        self.mix.set_epoch(self.current_epoch)

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = self.mix(*batch)
        outputs = self.model(x)
        self.log("train_accuracy", mixed_accuracy(outputs, y).weighted)
        return F.cross_entropy(outputs, y)

    def test_step(self, batch: tuple[Tensor, Tensor]) -> None:
        x, y = batch
        self.log("accuracy", 100 * (self.model(x).argmax(dim=1) == y).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


lightning.seed_everything(0, verbose=False)
data = load_data(Data(name="digits", size=14, view="none"))
sets = [TensorDataset(normalize(p.pictures, data.mean, data.std), p.labels) for p in (data.train, data.test)]
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trainer = lightning.Trainer(max_steps=STEPS, accelerator="cpu", enable_model_summary=False, **quiet)
model = Classifier()
trainer.fit(model, DataLoader(sets[0], 50, shuffle=True))
(result,) = trainer.test(model, DataLoader(sets[1], 450), verbose=False)
print(f"accuracy after {STEPS} steps: {result['accuracy']:.1f} % (chance {100 / 10:.1f} %)")
