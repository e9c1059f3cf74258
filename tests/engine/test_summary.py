"""What a run says of itself: its start, before the first step, and its summary, after the last."""

from samix.data.datasets import load_data
from samix.engine import summary as summaries
from samix.engine.recipe import to_dict
from samix.engine.summary import describe_start, summarize
from samix.runs.records import Start, begin_run


def test_value_a_summary_says_what_ran_what_came_out_and_what_it_took(tiny):
    speeds = [101.0, 102.0, 103.0, 104.0, 105.0, 105.0, 106.0, 107.0, 108.0, 109.0, 110.0, 111.0]
    rows = [{"epoch": float(n), "seconds": 10.0 * n, "images_per_s": v} for n, v in enumerate(speeds)]
    start = Start("tiny/samix", "samix train tiny", "abc", 24, 12)
    summary = summarize(start, tiny(seed=3), rows, {"top1": 5.5, "heads": {"mix_q": 5.5}})
    assert summary["top1"] == 5.5 and summary["heads"] == {"mix_q": 5.5}
    assert summary["seconds"] == 110.0 and summary["images_per_s"] == 105.5
    assert summary["seed"] == 3 and summary["command"] == "samix train tiny"
    assert summary["recipe"] == "tiny/samix" and summary["commit"] == "abc"
    assert summary["mixup"] == "samix" and summary["epochs"] == 3
    assert summary["train_pictures"] == 24 and summary["test_pictures"] == 12


def test_value_commits_of_a_start(tiny, tmp_path, monkeypatch):
    """One of a fresh run; each of them once of a run that went on at others."""
    split = load_data(tiny().data)
    begun = []
    for now, resumed in (("a", False), ("b", True), ("a", True), ("", True), ("c", False)):
        monkeypatch.setattr(summaries, "commit", lambda now=now: now)
        begun.append(describe_start(tmp_path, "tiny/samix", "samix train tiny", split, resumed=resumed))
        begin_run(tmp_path, to_dict(tiny()), begun[-1])
    assert [start.commit for start in begun] == ["a", "a+b", "a+b", "a+b", "c"]
    assert begun[0][:2] == ("tiny/samix", "samix train tiny") and begun[0][3:5] == (24, 12)
