"""The average of weights in a run: tested, kept in the checkpoint, resumed bit for bit, exported."""

from dataclasses import replace

import pytest
import torch

from samix.data.datasets import load_data
from samix.data.views import normalize
from samix.engine import loop
from samix.engine.averaging import all_heads
from samix.engine.loop import train
from samix.engine.optim import Optimizer
from samix.engine.pretraining import Pretraining
from samix.runs.classifier import load_classifier
from samix.runs.records import read_metrics


@pytest.fixture
def averaged(tiny):
    """Also with every change of training pictures: none of them may depend on where a run was stopped."""
    recipe = tiny("samix", optimizer=Optimizer(average=0.7), epochs=2)
    data = replace(recipe.data, rand_augment=9, jitter=0.4, erasing=0.5, repeats=2, test_size=24)
    return replace(recipe, data=data)


def test_value_the_average_is_a_head_and_no_parameter_that_learns(averaged, tiny):
    torch.manual_seed(0)
    model = averaged.build(12)
    model.eval()
    heads = all_heads(model, torch.randn(2, 3, 16, 16))
    assert list(heads)[0] == "mix_q" and torch.equal(heads["mix_a"], heads["mix_q"])
    learning = [p for group in model.parameter_groups().values() for p in group]
    assert not {id(p) for p in model.average.parameters()} & {id(p) for p in learning}
    assert not any("average" in name for name in tiny("samix").build(12).state_dict())


def test_value_a_run_tests_exports_and_resumes_it(averaged, tmp_path, weights, monkeypatch, short_retention):
    summary = train(averaged, tmp_path / "whole", name="tiny", quiet=True)
    assert set(summary["heads"]) == {"mix_q", "mix_k", "mix_a"}
    rows = read_metrics(tmp_path / "whole", 2, needed=())
    assert all("top1_mix_a" in row for row in rows)

    def stop(*arguments):
        save(*arguments)
        raise KeyboardInterrupt

    save = loop.save_checkpoint
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "save_checkpoint", stop)
        train(averaged, tmp_path / "parts", name="tiny", quiet=True)
    train(averaged, tmp_path / "parts", name="tiny", quiet=True)
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert not torch.equal(whole["average.network.1.weight"], whole["method.head.weight"])

    classifier = load_classifier(tmp_path / "whole" / "classifier-average")
    split = load_data(averaged.data)
    found = classifier.predict(split.test.pictures).argmax(dim=1)
    top1 = 100 * (found == split.test.labels).float().mean().item()
    assert top1 == pytest.approx(rows[-1]["top1_mix_a"], abs=1e-3)
    head = whole["average.network.1.weight"]
    assert torch.equal(classifier.head.weight, head)
    assert not torch.equal(load_classifier(tmp_path / "whole").head.weight, head)


def test_value_the_classifier_is_exported_for_the_size_of_the_tests(
    tiny, tmp_path, short_retention, read_json
):
    recipe = tiny("cutmix", epochs=1)
    recipe = replace(recipe, data=replace(recipe.data, test_size=24))
    train(recipe, tmp_path / "run", name="tiny", quiet=True)
    classifier, split = load_classifier(tmp_path / "run"), load_data(recipe.data)
    assert classifier.seen.size == 24
    x = classifier.images(split.test.pictures)
    assert x.shape[-2:] == (24, 24)
    small = normalize(split.test.pictures, *split.stats)
    assert small.shape[-2:] == (16, 16)
    assert read_json(tmp_path / "run" / "config.json")["size"] == 16


def test_error_settings_that_pre_training_and_networks_do_not_take(tiny):
    with pytest.raises(ValueError, match="optimizer.average is 0.9, but pre-training has no classifier"):
        Pretraining(optimizer=Optimizer(average=0.9))
    with pytest.raises(ValueError, match=r"views of pre-training are chosen by augment \(small\)"):
        Pretraining(data=replace(Pretraining().data, erasing=0.25))
    with pytest.raises(ValueError, match=r"optimizer.average must lie in \[0, 1\), got 1.0"):
        Optimizer(average=1.0)
    with pytest.raises(
        ValueError, match="deit-s takes pictures of the size alone.*test_size at null, got 64"
    ):
        recipe = tiny("plain")
        replace(
            recipe,
            data=replace(recipe.data, size=32, test_size=64),
            encoder=replace(recipe.encoder, name="deit-s"),
        )
