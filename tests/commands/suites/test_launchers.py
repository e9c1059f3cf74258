"""The commands that a suite prints, as a shell takes them."""

import shlex

import pytest


def lines(call, *words):
    return call("bench", "demo", "--rows", "samix", "--seeds", 2, *words).splitlines()


def test_value_every_kind_for_every_run(call):
    found = lines(call, "--print")
    assert found[0] == "# demo/samix seed 0" and found[4] == "# demo/samix seed 1" and len(found) == 8
    assert found[1] == "samix train demo/samix --seed 0 --machine.threads 1"
    assert found[2].startswith(
        "torchrun --nnodes 1 --nproc_per_node 1 --standalone -m samix train demo/samix "
    )


def test_value_torchrun_on_several_nodes(call):
    words = ("--machine.devices", 4, "--machine.nodes", 2)
    line = lines(call, "--print", "torchrun", *words)[1]
    assert line == (
        "torchrun --nnodes 2 --nproc_per_node 4 --rdzv_backend c10d --rdzv_endpoint $HEAD:29500 "
        "--rdzv_id demo-samix-1 -m samix train demo/samix --seed 1 --machine.devices 4 --machine.nodes 2"
    )


@pytest.mark.parametrize("accelerator", ["cpu", "gpu"])
def test_value_slurm_has_a_task_per_device(call, accelerator):
    words = ("--machine.devices", 4, "--machine.nodes", 2, "--data.workers", 3)
    line = lines(call, "--print", "slurm", *words, "--machine.accelerator", accelerator)[0]
    program, *asked, job = shlex.split(line)
    assert program == "sbatch" and {"--nodes=2", "--ntasks-per-node=4", "--cpus-per-task=4"} <= set(asked)
    assert ("--gpus-per-node=4" in asked) == (accelerator == "gpu")
    inner = shlex.split(job.removeprefix("--wrap="))
    assert inner[:5] == ["srun", "--cpus-per-task=4", "samix", "train", "demo/samix"]


def test_error_several_nodes_cannot_be_trained_here(fail):
    words = ("bench", "demo", "--rows", "samix", "--machine.nodes", 2)
    assert "machine.nodes is 2" in fail(*words)


def test_error_an_unknown_way(fail):
    assert "--print: unknown way 'slrm'. Did you mean 'slurm'?" in fail("bench", "demo", "--print", "slrm")
