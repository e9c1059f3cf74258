"""SAMix in a LightningModule: the network and its Mixer learn together, in one automatic optimisation.

pip install lightning;  python examples/integrations/lightning_samix.py [steps]
"""

import sys
from typing import Any

import torch

from samix import SAMix  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
import lightning
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        convs = [nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), nn.ReLU()]
        self.network = nn.Sequential(*convs, nn.Flatten(), nn.Linear(64 * 2 * 2, 10))
        self.samix = SAMix.wrap(self.network, layer="1", classes=10, size=14)

    @property
    def progress(self) -> float:
        return self.global_step / self.trainer.estimated_stepping_batches

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        losses = self.samix(*batch, progress=self.progress)
        self.log("encoder_loss", losses.encoder)
        return losses.total

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        super().optimizer_step(*args, **kwargs)
        self.samix.after_step(self.progress)  # not at a batch's end: gradients may be accumulated

    def configure_optimizers(self) -> torch.optim.Optimizer:
        groups = self.samix.parameter_groups()
        mixer = {"params": groups["mixer"], "lr": 5e-3}
        return torch.optim.AdamW([{"params": groups["encoder"]}, mixer], lr=2e-3)

    def test_step(self, batch: tuple[Tensor, Tensor]) -> None:
        self.log("accuracy", 100 * (self.network(batch[0]).argmax(dim=1) == batch[1]).float().mean())


lightning.seed_everything(0, verbose=False)
data = load_data(Data(name="digits", size=14, view="none"))
sets = [TensorDataset(normalize(p.pictures, data.mean, data.std), p.labels) for p in (data.train, data.test)]
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trainer = lightning.Trainer(max_steps=STEPS, accelerator="cpu", enable_model_summary=False, **quiet)
model = Classifier()
trainer.fit(model, DataLoader(sets[0], 50, shuffle=True))
(result,) = trainer.test(model, DataLoader(sets[1], 450), verbose=False)
print(f"accuracy after {STEPS} steps: {result['accuracy']:.1f} % (chance {100 / 10:.1f} %)")
