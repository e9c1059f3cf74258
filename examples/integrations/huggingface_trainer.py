"""samix with the Hugging Face Trainer: mixing happens in `compute_loss`, where the batch is on its device.

pip install "transformers[torch]";  python examples/integrations/huggingface_trainer.py [steps]
"""

import sys
import tempfile
from typing import Any

import torch

from samix import Mix  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
from torch.nn import functional as F
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from samix.data import Data, ImageSet, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.manual_seed(0)
data = load_data(Data(name="digits", size=16, view="none"))


class Digits(Dataset):
    def __init__(self, part: ImageSet) -> None:
        self.x, self.y = normalize(part.pictures, data.mean, data.std), part.labels

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"pixel_values": self.x[i], "labels": self.y[i]}


class MixingTrainer(Trainer):
    mix = Mix(["mixup", "resizemix"], classes=10, prob=0.5)

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        x, y = inputs["pixel_values"], inputs["labels"]
        x, y = self.mix(x, y) if model.training else (x, y)
        outputs = model(pixel_values=x)
        loss = F.cross_entropy(outputs.logits, y)
        return (loss, outputs) if return_outputs else loss


size = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
model = ViTForImageClassification(ViTConfig(image_size=16, patch_size=4, num_labels=10, **size))
with tempfile.TemporaryDirectory() as folder:
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    size = {"max_steps": STEPS, "learning_rate": 2e-3, "per_device_train_batch_size": 100}
    arguments = TrainingArguments(folder, **size, **quiet)
    trainer = MixingTrainer(model, arguments, train_dataset=Digits(data.train))
    trainer.train()
    logits = torch.from_numpy(trainer.predict(Digits(data.test)).predictions)
hits = logits.argmax(dim=1) == data.test.labels
print(f"accuracy after {STEPS} steps: {100 * hits.float().mean():.1f} % (chance {100 / 10:.1f} %)")
