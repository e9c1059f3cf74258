"""What the tests of a run's epochs come to."""

from samix.engine.tasks import accuracies


def row(epoch: int, top1: float | None = None) -> dict[str, float]:
    known = {"epoch": float(epoch), "seconds": 10.0 * epoch, "images_per_s": 100.0 + epoch, "loss": 1.0}
    if top1 is None:
        return known
    return known | {"top1": top1, "top5": top1 + 5, "ece": 100 - top1, "top1_one_q": top1 - 1}


def test_value_top1_is_the_median_of_the_last_ten_tested_epochs():
    tested = [99.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 30.0, 20.0, 8.0]
    rows = [row(n, value) for n, value in enumerate(tested, start=1)]
    rows.insert(5, row(5))  # an epoch without a test
    found = accuracies(rows)
    assert found["top1"] == 5.5
    assert found["best"] == 99.0 and found["last"] == 8.0
    assert found["top5"] == 13.0 and found["ece"] == 92.0
    assert found["heads"] == {"mix_q": 5.5, "one_q": 4.5}


def test_value_few_epochs():
    assert accuracies([row(1, 10.0), row(2, 20.0)])["top1"] == 15.0
    assert accuracies([row(1, 10.0), row(2, 20.0)], last=1)["top1"] == 20.0


def test_value_best_is_the_best_of_the_tested_epochs():
    assert accuracies([row(1), row(2, 20.0), row(3), row(4, 10.0)])["best"] == 20.0
