"""Lets torchvision import beside a torch whose compiled torchvision ops cannot load.

A torchvision wheel built for CUDA cannot load its operators beside a CPU build of torch, and
`import torchvision` then fails because two operators that it decorates do not exist. Declaring their
schemas first makes everything but the compiled operators work. Where the operators load, declaring
is skipped. Must be imported before torchvision.
"""

import importlib.util
from pathlib import Path

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def _load_operators() -> bool:
    """Tries to load torchvision's compiled operators without importing torchvision itself."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    for library in Path(spec.origin).parent.glob("_C.*"):
        try:
            torch.ops.load_library(str(library))
        except OSError:
            return False
    return hasattr(torch.ops.torchvision, "nms")


_library = None if _load_operators() else torch.library.Library("torchvision", "FRAGMENT")
if _library is not None:
    for _schema in _SCHEMAS:
        _library.define(_schema)
