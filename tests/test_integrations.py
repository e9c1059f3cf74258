"""The examples for other frameworks, where those are installed (`make test-integrations`)."""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from samix.mix import trainer_loss

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "integrations"
PACKAGES = {
    "accelerate_loop.py": "accelerate",
    "huggingface_collator.py": "transformers",
    "huggingface_datasets.py": "datasets",
    "huggingface_trainer.py": "transformers",
    "keras_torch.py": "keras",
    "lightning_module.py": "lightning",
    "lightning_samix.py": "lightning",
}


def test_value_every_integration_names_its_package():
    assert {path.name for path in FOLDER.glob("*.py")} == PACKAGES.keys()


@pytest.mark.parametrize("name", PACKAGES)
def test_value_integrations_are_short(name):
    assert len((FOLDER / name).read_text().splitlines()) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_value_integrations_run_and_learn(name, run_example):
    if importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed; run `make test-integrations`")
    accuracy, chance = run_example(FOLDER / name, 120)
    assert accuracy > 2 * chance


@pytest.fixture
def trained(tmp_path):
    """Trains a tiny ViT on one mixed batch: (mean loss of the step, problem type, logits before it)."""
    transformers = pytest.importorskip("transformers", reason="run `make test-integrations`")

    def train(batch, loss=None, parts=1):
        size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
        config = transformers.ViTConfig(image_size=8, patch_size=4, num_labels=3, **size)
        model = transformers.ViTForImageClassification(config).eval()
        with torch.no_grad():
            logits = model(batch["pixel_values"]).logits
        quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
        pace = {"max_steps": 1, "per_device_train_batch_size": 4, "gradient_accumulation_steps": parts}
        arguments = transformers.TrainingArguments(str(tmp_path), **pace, **quiet)
        trainer = transformers.Trainer(
            model, arguments, lambda samples: dict(batch), [{"labels": 0}] * 4 * parts, compute_loss_func=loss
        )
        return trainer.train().training_loss, model.config.problem_type, logits

    return train


@pytest.fixture
def mixed_batch():
    """Four pictures with soft labels, as a collator that mixes gives them."""
    return {"pixel_values": torch.randn(4, 3, 8, 8), "labels": torch.rand(4, 3).softmax(dim=1)}


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2])
def test_value_the_trainer_learns_mixed_labels_by_softmax(trained, mixed_batch, parts):
    loss, problem, logits = trained(mixed_batch, trainer_loss, parts)
    assert problem is None
    assert loss == pytest.approx(F.cross_entropy(logits, mixed_batch["labels"]).item(), rel=1e-3)


@pytest.mark.slow
def test_value_left_alone_the_trainer_takes_binary_cross_entropy(trained, mixed_batch):
    """Why `trainer_loss` exists; when this fails, transformers has changed and the docs must."""
    loss, problem, logits = trained(mixed_batch)
    assert problem == "multi_label_classification"
    binary = F.binary_cross_entropy_with_logits(logits, mixed_batch["labels"])
    assert loss == pytest.approx(binary.item(), rel=1e-3)
