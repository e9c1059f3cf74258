"""What users of `timm.data.Mixup` rely on, in samix's words; timm itself has no tests of it."""

import pytest
import torch

from samix import Mix


@pytest.mark.parametrize("mode", ["batch", "pair", "elem", "half"])
@pytest.mark.parametrize("policy", [{"mixup_alpha": 0.8}, {"mixup_alpha": 0.0, "cutmix_alpha": 1.0}])
def test_value_rows_are_smoothed_and_sum_to_one_in_every_mode_of_timm(policy, mode):
    x, y = torch.rand(8, 3, 12, 20), torch.arange(8)
    images, rows = Mix.timm(**policy, mode=mode, num_classes=10)(x, y)
    assert len(images) == len(rows) == (4 if mode == "half" else 8)
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(len(rows)))
    assert float(rows.min()) == pytest.approx(0.01)
