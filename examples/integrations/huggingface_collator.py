"""samix in the collator of the Hugging Face Trainer, with the loss that soft labels need there.

pip install "transformers[torch]";  python examples/integrations/huggingface_collator.py [steps]
"""

import sys
import tempfile

import torch

from samix.mix import Mix, trainer_loss  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
torch.manual_seed(0)
data = load_data(Data(name="digits", size=16, view="none"))
pictures = [(normalize(part.pictures, *data.stats), part.labels) for part in (data.train, data.test)]
train, test = ([{"pixel_values": x, "labels": y} for x, y in zip(*part, strict=True)] for part in pictures)


class MixingTrainer(Trainer):
    """Mixes what is trained on. A `data_collator` alone would mix the pictures of evaluation too."""

    mix = Mix("cutmix", classes=10, prob=0.5)

    def get_train_dataloader(self) -> DataLoader:
        plain, self.data_collator = self.data_collator, self.mix.collate
        loader = super().get_train_dataloader()
        self.data_collator = plain
        return loader


size = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
model = ViTForImageClassification(ViTConfig(image_size=16, patch_size=4, num_labels=10, **size))
with tempfile.TemporaryDirectory() as folder:
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    pace = {"max_steps": STEPS, "learning_rate": 2e-3, "per_device_train_batch_size": 100}
    arguments = TrainingArguments(folder, **pace, **quiet)
    # Without `compute_loss_func` the model sees float labels and takes binary cross-entropy in silence.
    trainer = MixingTrainer(model, arguments, train_dataset=train, compute_loss_func=trainer_loss)
    trainer.train()
    found = trainer.predict(test)
hits = found.predictions.argmax(axis=1) == found.label_ids
print(f"accuracy after {STEPS} steps: {100 * hits.mean():.1f} % (chance {100 / 10:.1f} %)")
