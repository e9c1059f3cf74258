"""A generator of one's own: no worker and no process repeats another's draws, and one seed fixes them all."""

from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from samix import Mix

BATCHES = 4
SAMPLES = [(torch.zeros(1, 4, 4), label) for label in (0, 1)] * BATCHES


def make_loader(workers: int, seed: int = 1) -> DataLoader:
    mix = Mix("mixup", 2, generator=torch.Generator().manual_seed(seed))
    return DataLoader(SAMPLES, batch_size=2, num_workers=workers, collate_fn=mix.collate)


def lams(loader: DataLoader) -> list[float]:
    """lam of every batch of an epoch, which is what the first label keeps of its class."""
    return [float(rows[0, 0]) for _, rows in loader]


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_value_draws_differ_between_workers_and_epochs_and_one_seed_fixes_them(workers):
    def epochs(count: int, seed: int) -> list[float]:
        torch.manual_seed(0)
        loader = make_loader(workers, seed)
        return [lam for _ in range(count) for lam in lams(loader)]

    first = epochs(2, seed=1)
    assert len(set(first)) == 2 * BATCHES
    assert epochs(1, seed=1) == first[:BATCHES]
    assert not set(epochs(1, seed=2)) & set(first)


def test_value_the_first_process_draws_from_the_generator_itself():
    mix, x, y = Mix("mixup", 2, generator=torch.Generator().manual_seed(1)), torch.zeros(2, 1, 4, 4), [0, 1]
    drawn = mix.policy.draw(2, torch.Generator().manual_seed(1)).lam
    assert torch.equal(mix.mixed(x, torch.tensor(y)).pairing.lam, drawn)


def test_value_another_rank_draws_otherwise_and_reproducibly(monkeypatch):
    first = lams(make_loader(0))
    monkeypatch.setenv("RANK", "1")
    second = lams(make_loader(0))
    assert not set(first) & set(second) and lams(make_loader(0)) == second and len(set(second)) == BATCHES


def test_value_a_saved_generator_goes_on_where_it_was(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    generator = torch.Generator().manual_seed(1)
    mix, x, y = Mix("mixup", 2, generator=generator), torch.zeros(2, 1, 4, 4), torch.arange(2)
    mix(x, y)
    state, expected = generator.get_state(), mix.mixed(x, y).pairing.lam
    generator.set_state(state)
    assert torch.equal(mix.mixed(x, y).pairing.lam, expected)


def report_draws() -> None:
    """What each of two processes draws, with two workers."""
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)  # the same in both, as many scripts have it
    found: list[list[float]] = [[], []]
    torch.distributed.all_gather_object(found, lams(make_loader(0)) + lams(make_loader(2)))
    if torch.distributed.get_rank() == 0:
        print("different draws:", len(set(found[0] + found[1])))
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_value_two_processes_with_two_workers_each(start_two):
    done = start_two(Path(__file__))
    assert f"different draws: {4 * BATCHES}" in done.stdout, done.stderr


if __name__ == "__main__":
    report_draws()
