"""The drop-in `samix.Mix`: any mixup in any training loop, however its batches are packed."""

from samix.mix.dropin import Mix

__all__ = ["Mix"]
