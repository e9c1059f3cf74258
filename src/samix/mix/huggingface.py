"""The loss that the Hugging Face Trainer needs where labels were mixed before the model sees them.

    Trainer(model, arguments, data_collator=..., compute_loss_func=trainer_loss)

A classifier of transformers chooses its own loss by the dtype of the labels, once, at the first batch: soft
labels are floats, so it takes them for many labels per picture and learns by binary cross-entropy, and
nothing tells. Given `compute_loss_func`, the Trainer keeps the labels from the model. transformers is not
imported here.
"""

from typing import Any

from torch import Tensor

from samix.core.shapes import AnyLabels, Scalar
from samix.losses import cross_entropy


def trainer_loss(outputs: Any, labels: AnyLabels, num_items_in_batch: Tensor | int | None = None) -> Scalar:
    """Softmax cross-entropy of `outputs.logits` [B, classes], for soft rows and for class indices.

    Mean over the batch. The Trainer counts the entries of all labels of one optimizer step, and leaves the
    division by accumulated batches to this function: with `num_items_in_batch` the loss is the batch's sum
    over the number of pictures in the whole step.

    >>> import torch
    >>> outputs = {"logits": torch.tensor([[0.75, 0.25]]).log()}
    >>> round((-trainer_loss(outputs, torch.tensor([0]))).exp().item(), 4)
    0.75
    """
    logits = outputs["logits"]
    if labels.ndim == 2 and labels.shape != logits.shape:
        raise ValueError(
            f"soft labels {list(labels.shape)} do not fit logits {list(logits.shape)}: give "
            f"Mix(..., classes=) the model's num_labels, {logits.shape[1]}."
        )
    loss = cross_entropy(logits, labels)
    if num_items_in_batch is None:
        return loss
    pictures = num_items_in_batch / labels[0].numel()  # soft rows have one entry per class
    return loss * len(labels) / pictures
