"""Evaluation: accuracy and calibration, neighbours, linear probes, clusters, and what masks keep and follow.

What reads datasets (features, linear probe, retention) is imported when it is first used: it needs
torchvision, and `import samix` should not wait for that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from samix.evaluate.accuracy import Score, count, score, total
from samix.evaluate.clusters import ClusterQuality, cluster_quality
from samix.evaluate.following import Following, follow_lam
from samix.evaluate.knn import KnnScore, knn_accuracy
from samix.evaluate.logistic import logistic_probe
from samix.evaluate.mixed_accuracy import MixedAccuracy, mixed_accuracy

if TYPE_CHECKING:
    from samix.evaluate.features import extract, features_of
    from samix.evaluate.linear import PROTOCOLS, LinearProbe, linear_probe
    from samix.evaluate.retention import (
        Retention,
        RetentionRow,
        best_retention,
        best_sweep,
        mixed_retention,
        retention_sweep,
    )

IMPORTED_LATER = {
    "features": ("extract", "features_of"),
    "linear": ("PROTOCOLS", "LinearProbe", "linear_probe"),
    "retention": (
        "Retention",
        "RetentionRow",
        "best_retention",
        "best_sweep",
        "mixed_retention",
        "retention_sweep",
    ),
}


def __getattr__(name: str) -> Any:
    """A name of `IMPORTED_LATER`, from its file."""
    for file, names in IMPORTED_LATER.items():
        if name in names:
            return getattr(import_module(f"samix.evaluate.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "PROTOCOLS",
    "ClusterQuality",
    "Following",
    "KnnScore",
    "LinearProbe",
    "MixedAccuracy",
    "Retention",
    "RetentionRow",
    "Score",
    "best_retention",
    "best_sweep",
    "cluster_quality",
    "count",
    "extract",
    "features_of",
    "follow_lam",
    "knn_accuracy",
    "linear_probe",
    "logistic_probe",
    "mixed_accuracy",
    "mixed_retention",
    "retention_sweep",
    "score",
    "total",
]
