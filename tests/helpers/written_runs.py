"""Small fake run folders, as the engine would write them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

EPOCHS = 4
MIXER = {
    "mixer": 1.5,
    "local": 0.7,
    "globally": 2.0,
    "mask": 0.1,
    "gamma": 0.5,
    "gap": 0.05,
    "deviation": 0.2,
}


def write_rows(path: Path, rows: list[dict[str, float]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def draw_arrays(mixup: str, pairs: int = 3, size: int = 8, pictures: int = 0) -> dict[str, np.ndarray]:
    """Mixed pictures; runs with the same `pictures` share their pairs."""
    rng = np.random.default_rng(pictures)
    first, partner = rng.integers(0, 256, (2, pairs, 3, size, size), dtype=np.uint8)
    lams = np.array([0, 0.5, 1], dtype=np.float32)
    masks = np.broadcast_to(lams[:, None, None, None, None], (3, pairs, 1, size, size)).copy()
    arrays = {"first": first, "partner": partner, "lams": lams, "masks": masks}
    arrays["mixed"] = (masks * first + (1 - masks) * partner).astype(np.uint8)
    if mixup == "plain":  # mixes nothing, so the engine writes the pictures alone
        return {name: arrays[name] for name in ("first", "partner", "lams")}
    if mixup in ("automix", "samix"):
        arrays |= {name: rng.random((pairs, 4, 4), dtype=np.float32) for name in ("content", "attention")}
    return arrays


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """Writes runs/<recipe>/<seed> and returns the folder."""

    def write(
        recipe: str = "demo/samix", mixup: str = "samix", seed: int = 0, *, top1: float = 60.0,
        finished: bool = True, clean_weight: float = 0.0, pictures: int = 0, folder: str | None = None,
        summary: dict[str, Any] | None = None, settings: dict[str, Any] | None = None,
    ) -> Path:  # fmt: skip
        path = tmp_path / "runs" / (folder or recipe) / str(seed)
        path.mkdir(parents=True)
        config = {
            "machine": {"threads": None},
            "data": {"name": "synthetic", "size": 8, "workers": 0},
            "mixup": {"name": mixup, "alpha": 1.0},
            "objective": {"clean_weight": clean_weight},
            "epochs": EPOCHS,
            "seed": seed,
        }
        (path / "config.yaml").write_text(yaml.safe_dump(config | (settings or {})))
        rows = [
            {"epoch": e, "loss": 2.0 / e} | (MIXER if mixup == "samix" else {}) for e in range(1, EPOCHS + 1)
        ]
        for row in rows[1::2]:
            row |= {"top1": top1 + row["epoch"], "top5": 90.0, "ece": 5.0}
        write_rows(path / "metrics.csv", rows)
        final = {
            "recipe": recipe, "mixup": mixup, "seed": seed, "epochs": EPOCHS, "top1": top1, "best": top1 + 2,
            "last": top1 + 1, "top5": 90.0, "ece": 100 - top1, "seconds": 10.0 + seed, "images_per_s": 1000.0,
            "peak_mb": 500.0, "commit": "abc123", "command": f"samix train {recipe}",
            "versions": {"torch": "2"},
        }  # fmt: skip
        if finished:
            (path / "summary.json").write_text(json.dumps(final | (summary or {})))
        np.savez(path / "samples.npz", **draw_arrays(mixup, pictures=pictures))
        if mixup != "plain":
            kept = [{"lam": lam, "first": lam, "second": 1 - lam, "both": 0.5} for lam in (0.0, 0.5, 1.0)]
            write_rows(path / "retention.csv", kept)
        return path

    return write
