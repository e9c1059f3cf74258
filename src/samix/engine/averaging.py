"""The average of a classifier's weights beside the model that is trained: `optimizer.average`."""

from samix.contract import Around, Averaged, Classifies, Model
from samix.core.shapes import Images, Logits
from samix.methods.supervised import Supervised
from samix.nn.averaging import WeightAverage

HEAD = "mix_a"
"""The name of its logits among the heads."""


def innermost(model: Model) -> Model:
    """The method inside all that wraps it."""
    while isinstance(model, Around):
        model = model.method
    return model


def add_average(model: Model, momentum: float) -> Model:
    """The model, which now also holds an average of its classifier; part of its state from now on."""
    method = innermost(model)
    assert isinstance(method, Supervised)  # the settings of other recipes refuse it
    model.add_module("average", WeightAverage(method.classifier, momentum))
    return model


def follow_average(model: Model) -> None:
    """Moves the average one step towards the trained weights; nothing without one."""
    method = innermost(model)
    if isinstance(model, Averaged) and isinstance(method, Supervised):
        model.average.follow(method.classifier)


def all_heads(model: Classifies, x: Images) -> dict[str, Logits]:
    """Logits of every head of the model, and of the average where there is one."""
    heads = model.heads(x)
    return heads | {HEAD: model.average(x)} if isinstance(model, Averaged) else heads
