"""What a recipe becomes before it is trained."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from samix.engine.machine import Machine
from samix.engine.setup import synchronise_norms


@pytest.mark.parametrize(
    ("processes", "device", "asked", "shared"),
    [(2, "cuda", True, True), (2, "cuda", False, False), (1, "cuda", True, False), (2, "cpu", True, False)],
)
def test_value_batch_norm_is_shared_where_asked_and_possible(
    tiny, processes, device, asked, shared, unchecked_shapes
):
    fabric: Any = SimpleNamespace(world_size=processes, device=torch.device(device))
    recipe = tiny("plain", machine=Machine(accelerator="cpu", sync_norm=asked))
    model = synchronise_norms(fabric, recipe.build(12), recipe)
    kinds = {type(m) for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)}
    assert kinds == {nn.SyncBatchNorm if shared else nn.BatchNorm2d}
