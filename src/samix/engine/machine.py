"""Machine: where a run works and how fast, as settings."""

from dataclasses import dataclass
from typing import Literal

import torch

from samix.core.checks import check_at_least, check_at_most, check_words

MOST_THREADS = 1024
"""More threads, or devices of a node, than any machine has: the system would end the program."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how fast. What is learned stays the same, apart from rounding, for one process and one part;
    several processes, or parts of a batch, draw their own pairs and norm their own share of a batch."""

    accelerator: Literal["auto", "cpu", "cuda", "gpu", "mps"] = "auto"
    """auto, cpu, cuda, gpu or mps (Lightning Fabric)."""
    devices: int = 1
    """Processes per node; more than one trains with DDP."""
    nodes: int = 1
    """Number of nodes."""
    strategy: Literal["auto", "ddp"] = "auto"
    """auto or ddp; auto takes ddp for several processes. Momentum copies forbid sharded weights."""
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    """32-true, bf16-mixed or 16-mixed (Fabric's names)."""
    threads: int | None = None
    """CPU threads per process; null leaves torch's choice."""
    channels_last: bool = True
    """Memory format of convolutions; faster on most machines."""
    compile: bool = False
    """torch.compile the encoder; pays off in long runs."""
    accumulate: int = 1
    """Number of parts that each batch is split into, to save memory; batch-norm then sees the parts."""
    sync_norm: bool = False
    """Batch norm over all processes on CUDA, also where the method does not ask for it."""
    tracker: Literal["none", "tensorboard", "wandb"] = "none"
    """tensorboard or wandb (W&B) also show each epoch's row; none leaves it at metrics.csv."""

    def __post_init__(self) -> None:
        check_words(self, "machine")
        check_at_least(1, self, "machine", "devices", "nodes", "accumulate", "threads")
        check_at_most(MOST_THREADS, self, "machine", "threads", "devices")

    @property
    def processes(self) -> int:
        """Over all nodes."""
        return self.devices * self.nodes

    @property
    def layout(self) -> torch.memory_format:
        """The memory format of convolutions."""
        return torch.channels_last if self.channels_last else torch.contiguous_format


def check_present(machine: Machine) -> None:
    """Refuses a GPU that is asked for and not there, and more devices than there are."""
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    found = {"cuda": cuda, "mps": mps, "gpu": cuda or mps}
    if not found.get(machine.accelerator, True):
        raise ValueError(
            f"machine.accelerator is {machine.accelerator!r}, but torch {torch.__version__} finds no such "
            "GPU here. Take --machine.accelerator auto or cpu, or install a torch that fits the GPU's driver."
        )
    count = torch.cuda.device_count() if cuda and machine.accelerator in ("auto", "cuda", "gpu") else None
    if count is not None and machine.devices > count:
        raise ValueError(
            f"machine.devices is {machine.devices}, but torch finds {count} GPUs here. Ask for {count} or "
            "fewer, or for --machine.accelerator cpu."
        )
