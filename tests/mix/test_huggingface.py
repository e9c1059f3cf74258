"""The Trainer's loss: softmax for soft labels, and the same step however a batch is cut into parts.

That transformers' own choice is another loss is shown in `tests/test_integrations.py`.
"""

import pytest
import torch

from samix.mix import trainer_loss

LOGITS = torch.tensor([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]])
ROWS = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.4, 0.6], [0.1, 0.0, 0.9], [0.0, 1.0, 0.0]])
INDICES = torch.tensor([0, 2, 2, 1])


def slow(logits, rows):
    """-sum_c y_c log p_c, picture by picture and class by class."""
    total = 0.0
    for values, row in zip(logits, rows, strict=True):
        p = values.exp() / values.exp().sum()
        total -= sum(float(weight * share.log()) for weight, share in zip(row, p, strict=True))
    return total / len(logits)


def test_value_soft_labels_have_softmax_cross_entropy():
    assert trainer_loss({"logits": LOGITS}, ROWS).item() == pytest.approx(slow(LOGITS, ROWS), rel=1e-5)


def test_value_class_indices_as_in_evaluation():
    rows = torch.eye(3)[INDICES]
    assert trainer_loss({"logits": LOGITS}, INDICES).item() == pytest.approx(slow(LOGITS, rows), rel=1e-5)


@pytest.mark.parametrize("labels", [ROWS, INDICES], ids=["soft", "indices"])
@pytest.mark.parametrize("cuts", [(2, 2), (1, 3)])
def test_value_accumulated_parts_sum_to_the_whole_batch(labels, cuts):
    items = labels.ne(-100).sum()  # what the Trainer counts, over all parts of one step
    parts = zip(LOGITS.split(cuts), labels.split(cuts), strict=True)
    total = sum(trainer_loss({"logits": logits}, part, items) for logits, part in parts)
    torch.testing.assert_close(total, trainer_loss({"logits": LOGITS}, labels))


def test_gradient_of_every_picture_is_p_minus_y_over_the_batch():
    logits = LOGITS.clone().requires_grad_()
    trainer_loss({"logits": logits}, ROWS).backward()
    torch.testing.assert_close(logits.grad, (LOGITS.softmax(dim=1) - ROWS) / len(ROWS))


def test_error_other_number_of_classes():
    with pytest.raises(ValueError, match=r"soft labels \[4, 2\] do not fit logits \[4, 3\].*num_labels, 3"):
        trainer_loss({"logits": LOGITS}, ROWS[:, :2])
