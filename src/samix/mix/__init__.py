"""The drop-in `samix.Mix`: any mixup in any training loop, however its batches are packed."""

from samix.mix.dropin import Mix
from samix.mix.huggingface import trainer_loss

__all__ = ["Mix", "trainer_loss"]
