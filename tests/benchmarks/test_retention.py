"""benchmarks/retention.py on packs that the test writes itself."""

import csv
import io

import numpy as np
import pytest
import torch
from PIL import Image

from samix.data.synthetic import draw_pictures
from samix.mixups import MIXUPS


@pytest.fixture(scope="module")
def retention(load_benchmark):
    return load_benchmark("retention")


def packed(pictures):
    files = []
    for picture in pictures:
        file = io.BytesIO()
        picture.save(file, "PNG")
        files.append(file.getvalue())
    ends = np.cumsum([0, *(len(file) for file in files)])
    return {"val_bytes": np.frombuffer(b"".join(files), np.uint8), "val_offsets": ends}


@pytest.fixture
def packs(tmp_path):
    """Drawn pictures of 32 x 40 px; the first shows no object, the second is too small."""
    drawn = draw_pictures(14, size=32)
    images = [Image.fromarray(x.permute(1, 2, 0).numpy()).resize((40, 32)) for x in drawn.images]
    masks = [Image.fromarray(m[0].numpy()).convert("1").resize((20, 16)) for m in drawn.masks]
    masks[0], images[1], masks[1] = (
        Image.new("1", (20, 16)),
        Image.new("RGB", (16, 12)),
        Image.new("1", (8, 6), 1),
    )
    names = np.array(["a", "b"])
    labels = np.zeros(14, dtype=np.int16)
    np.savez(tmp_path / "oxford_pets.npz", class_names=names, val_labels=labels, **packed(images))
    np.savez(tmp_path / "oxford_pets_masks.npz", **packed(masks))
    return tmp_path


def read_table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_value_the_table(retention, packs, finished, tmp_path, capsys):
    table = tmp_path / "new" / "table.csv"
    words = ["--root", packs, "--mixups", "mixup", "cutmix", "resizemix", "augmix", "tokenmix"]
    words += ["--mixers", finished, "--pictures", 8, "--size", 24, "--table", table]
    retention.main([str(word) for word in words])
    out = capsys.readouterr().out
    assert "augmix is left out: it does not show" in out and "tokenmix is left out: it needs" in out
    assert "masks before adjusting: correlation" in out and "gap" in out and "deviation" in out
    rows = read_table(table)
    assert " ".join(rows[0]) == "policy lam first second both weaker best share pictures seed"
    assert [row["policy"] for row in rows[::9]] == ["mixup", "cutmix", "resizemix", str(finished)]
    assert [row["lam"] for row in rows[:9]] == [f"0.{tenth}" for tenth in range(1, 10)]
    for row in rows:
        first, second, both, best, share = (
            float(row[n]) for n in ("first", "second", "both", "best", "share")
        )
        assert both == pytest.approx((first + second) / 2, abs=1e-3) and 0.5 < best <= 1
        assert share == pytest.approx((both - 0.5) / (best - 0.5), abs=2e-3)
        if row["policy"] == "mixup":
            assert first == pytest.approx(float(row["lam"]), abs=1e-4) and abs(share) < 1e-3


def test_value_pictures_are_those_with_an_animal_in_the_centre(retention, packs):
    pets = retention.read_pets(str(packs), 10, 24, seed=0)
    assert pets.images.shape == (10, 3, 24, 24) and pets.masks.shape == (10, 1, 24, 24)
    assert pets.masks.any(dim=3).any(dim=2).all() and pets.masks.dtype == torch.bool
    again = retention.read_pets(str(packs), 10, 24, seed=0)
    assert torch.equal(pets.images, again.images)
    with pytest.raises(ValueError, match=r"--pictures is 14, but only 1\d of 24 px show an animal"):
        retention.read_pets(str(packs), 14, 24, seed=0)


def test_value_what_is_compared(retention):
    chosen = retention.choose(None, [])
    assert {"mixup", "cutmix", "puzzlemix", "saliencymix"} <= set(chosen) < set(MIXUPS)
    assert "supermix" not in chosen and "supermix" in retention.choose(["supermix"], [])


def test_value_a_network_supplies_each_hint_once(retention, monkeypatch):
    calls = []

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 5, 4, 4)

        def forward_features(self, x):
            return self.conv(x)

        def forward(self, x):
            return self.conv(x).mean(dim=(2, 3))

    monkeypatch.setattr(retention, "classifier", lambda: calls.append(1) or Net())
    x = torch.rand(50, 3, 16, 16)
    supply = retention.hints_about(x)
    assert supply("pixels").shape == x.shape and not calls
    assert supply("saliency").shape == (50, 16, 16) and supply("maps").shape == (50, 5, 4, 4)
    assert supply("saliency") is supply("saliency") and calls == [1]
    assert not supply("maps").requires_grad and callable(supply("teacher"))
