"""Testing: every head, every picture, nothing learned."""

from dataclasses import replace

import pytest
import torch

from samix.data.datasets import load_data
from samix.data.views import normalize
from samix.engine import testing
from samix.engine.setup import make_fabric
from samix.engine.step import NonFiniteLossError
from samix.engine.testing import evaluate, head_scores
from samix.evaluate.accuracy import Score, count, score
from samix.methods.supervised import Objective


@pytest.fixture
def parts(tiny):
    recipe = tiny(objective=Objective(clean_weight=1.0))
    recipe = replace(recipe, data=replace(recipe.data, test_pictures=30))
    fabric = make_fabric(recipe)
    fabric.launch()
    model = recipe.build(12)
    for head in (model.method.head, model.method.clean_head):
        torch.nn.init.normal_(head.weight)
    return fabric, model, load_data(recipe.data), recipe


def test_value_four_heads_the_online_mixed_one_first(parts):
    assert list(evaluate(*parts)) == ["mix_q", "one_q", "mix_k", "one_k"]


def test_value_scores_are_those_of_all_pictures_at_once(parts, monkeypatch):
    monkeypatch.setattr(testing, "TEST_BATCH", 7)
    _, model, split, _ = parts
    scores = evaluate(*parts)
    model.eval()
    with torch.no_grad():
        heads = model.heads(normalize(split.test.pictures, split.mean, split.std))
    for name, logits in heads.items():
        assert tuple(scores[name]) == pytest.approx(tuple(score(count(logits, split.test.labels))), abs=1e-3)


def test_value_testing_changes_nothing(parts):
    _, model, _, _ = parts
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for training in (True, False):
        model.train(training)
        evaluate(*parts)
        assert model.training is training and model.momentum.training is training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_value_row():
    scores = {"mix_q": Score(50.0, 90.0, 5.0, 1.5), "one_q": Score(60.0, 95.0, 4.0, 1.0)}
    row = {"top1": 50.0, "top5": 90.0, "ece": 5.0, "cross_entropy": 1.5, "top1_one_q": 60.0}
    assert head_scores(scores) == row


def test_error_a_model_that_has_blown_up(parts):
    torch.nn.init.constant_(parts[1].method.head.weight, float("nan"))
    with pytest.raises(NonFiniteLossError, match="mix_q"):
        evaluate(*parts)
