"""The command of a run as a shell takes it: alone, under torchrun, or as a job of SLURM.

Lightning Fabric finds out by itself who started it, and refuses numbers that do not agree: machine.devices is
the number of processes per node, machine.nodes that of nodes.
"""

import shlex
from collections.abc import Callable

from samix.commands.suites.plan import Planned

PORT = 29500
"""Where the nodes of torchrun meet, on the first of them."""


def plain_line(run: Planned, threads: int) -> str:
    """`samix train ...`; with several devices it starts its other processes itself, on one node."""
    return shlex.join(["samix", *run.words, "--machine.threads", str(threads)])


def torchrun_line(run: Planned, threads: int) -> str:
    """torchrun, to be called on every node with $HEAD the name of the first one."""
    machine = run.recipe.machine
    words = ["torchrun", "--nnodes", str(machine.nodes), "--nproc_per_node", str(machine.devices)]
    if machine.nodes == 1:
        words.append("--standalone")
    meeting = ""
    if machine.nodes > 1:
        identity = f"{run.family}-{run.row}-{run.seed}"
        meeting = f" --rdzv_backend c10d --rdzv_endpoint $HEAD:{PORT} --rdzv_id {shlex.quote(identity)}"
    return f"{shlex.join(words)}{meeting} {shlex.join(['-m', 'samix', *run.words])}"


def slurm_line(run: Planned, threads: int) -> str:
    """sbatch with a task per device; a job that is put back goes on from its last checkpoint."""
    machine = run.recipe.machine
    cores = f"--cpus-per-task={threads + run.recipe.data.workers}"
    asked = [f"--job-name={run.row}-{run.seed}", f"--nodes={machine.nodes}"]
    asked += [f"--ntasks-per-node={machine.devices}", cores]
    if machine.accelerator != "cpu":
        asked.append(f"--gpus-per-node={machine.devices}")
    # Newer versions of srun do not take the cores of a task over from sbatch.
    job = shlex.join(["srun", cores, "samix", *run.words])
    return shlex.join(["sbatch", *asked, "--requeue", "--open-mode=append", f"--wrap={job}"])


LAUNCHERS: dict[str, Callable[[Planned, int], str]] = {
    "plain": plain_line,
    "torchrun": torchrun_line,
    "slurm": slurm_line,
}
