"""The queue is a ring: newest in, oldest out, whatever the sizes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samix.nn.key_queue import UNLABELLED, Queue


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.lists(st.integers(1, 12), max_size=8))
def test_invariant_the_queue_holds_the_latest_keys(length, batches):
    queue = Queue(length, 1)
    history = [float(key) for key in queue.keys[:, 0]]
    count = 0
    for batch in batches:
        keys = torch.arange(count, count + batch).float()[:, None] + 10
        queue.push(keys)
        history += keys[:, 0].tolist()
        count += batch
        assert sorted(queue.read()[:, 0].tolist()) == pytest.approx(sorted(history[-length:]))


def test_value_starts_with_random_unit_vectors():
    queue = Queue(50, 8)
    torch.testing.assert_close(queue.keys.norm(dim=1), torch.ones(50))
    assert len(queue.keys[:, 0].unique()) == 50


def test_value_what_was_read_stays_when_the_queue_moves_on():
    queue = Queue(4, 2)
    read = queue.read()
    copy = read.clone()
    queue.push(torch.ones(3, 2))
    assert torch.equal(read, copy) and not torch.equal(queue.read(), copy)


def test_value_a_checkpoint_holds_keys_and_place():
    queue, other = Queue(5, 2), Queue(5, 2)
    queue.push(torch.ones(3, 2))
    other.load_state_dict(queue.state_dict())
    for each in (queue, other):
        each.push(2 * torch.ones(4, 2))
    assert torch.equal(queue.keys, other.keys) and int(other.count) == 7


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_invariant_labels_stay_with_their_keys(length, batches):
    queue, count = Queue(length, 1), 0
    for batch in batches:
        labels = torch.arange(count, count + batch)
        queue.push(labels.float()[:, None] + 0.5, labels)
        count += batch
    known = queue.read_labels() != UNLABELLED
    assert int(known.sum()) == min(count, length)
    assert torch.equal(queue.read()[known, 0] - 0.5, queue.read_labels()[known].float())


def test_value_keys_without_labels_replace_labels_too():
    queue = Queue(4, 2)
    assert queue.read_labels().tolist() == [UNLABELLED] * 4
    queue.push(torch.ones(4, 2), torch.tensor([3, 1, 4, 1]))
    queue.push(torch.ones(2, 2))
    assert queue.read_labels().tolist() == [UNLABELLED, UNLABELLED, 4, 1]


def test_value_full_once_every_key_was_pushed():
    queue, full = Queue(5, 2), []
    for count in (2, 2, 1, 3):
        queue.push(torch.ones(count, 2))
        full.append(queue.is_full)
    assert full == [False, False, True, True]


def test_shape_half_precision_keys_are_stored_in_float32():
    queue, keys = Queue(4, 2), torch.randn(2, 2).bfloat16()
    queue.push(keys)
    assert queue.keys.dtype == torch.float32 and torch.equal(queue.keys[:2], keys.float())


def test_gradient_stops_at_the_queue():
    queue, keys = Queue(4, 2), torch.ones(2, 2, requires_grad=True)
    queue.push(keys)
    assert not queue.read().requires_grad and not list(queue.parameters())


def test_error_an_empty_queue():
    with pytest.raises(ValueError, match="at least 1 key, got 0"):
        Queue(0, 8)
