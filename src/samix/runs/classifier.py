"""The tested classifier of a run, to use: a folder that samix reads, and timm where the network is timm's.

`timm.create_model("local-dir:RUN/classifier", pretrained=True)` gives the same logits.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from samix.core.shapes import Images, Logits, Stats
from samix.data.datasets import Data
from samix.data.folders import read_picture
from samix.data.views import normalize, test_view
from samix.nn.encoder import Encoder
from samix.nn.plain_timm import head_name, whole_weights
from samix.nn.zoo import Network
from samix.runs.files import CLASSIFIER, CLASSIFIER_WEIGHTS, CONFIG, DESCRIPTION, own_folder, write_text
from samix.runs.for_timm import Seen, for_timm
from samix.runs.records import read_config
from samix.runs.schema import COUNT, TEXT, check
from samix.runs.schema import DESCRIPTION as DESCRIBED_ENCODER
from samix.runs.weights import build_described, read_weights, save_weights

PathLikes: TypeAlias = str | PathLike[str]
DESCRIBED = {**DESCRIBED_ENCODER, "head": TEXT, "test_resize": COUNT}
"""What the header of a classifier's weights says."""


class Guess(NamedTuple):
    """A class that a picture may be of."""

    name: str
    prob: float


class Classifier(nn.Module):
    """A trained network in eval mode with all that it takes to use it on pictures."""

    def __init__(self, encoder: Encoder, head: nn.Linear, seen: Seen) -> None:
        super().__init__()
        self.encoder, self.head, self.seen = encoder, head, seen
        self.eval()

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the logits."""
        return self.seen.classes

    def forward(self, x: Images) -> Logits:
        """Logits of normalised images."""
        return self.head(self.encoder(x))

    def images(self, pictures: Sequence[PathLikes | Tensor] | Tensor) -> Images:
        """Files, or pictures uint8 [3, H, W] of any size, as the images that the run was tested with."""
        read = pictures if isinstance(pictures, Tensor) else [as_picture(picture) for picture in pictures]
        for picture in read:
            check_picture(picture)
        view = test_view(Data(size=self.seen.size, test_resize=self.seen.test_resize))
        return normalize(view(read).to(self.head.weight.device), *self.seen.stats)

    @torch.no_grad()
    def predict(self, pictures: Sequence[PathLikes | Tensor] | Tensor | PathLikes, batch: int = 64) -> Tensor:
        """Probabilities [N, K] of N pictures: files, or tensors uint8 [3, H, W] or [N, 3, H, W].

        `batch` pictures go through the network at a time, in the mode that it is in (`eval` unless changed).
        """
        if isinstance(pictures, str | PathLike):
            pictures = [pictures]
        elif isinstance(pictures, Tensor) and pictures.ndim == 3:
            pictures = pictures[None]
        parts = [pictures[k : k + batch] for k in range(0, len(pictures), batch)]
        found = [self(self.images(part)).float().softmax(dim=1).cpu() for part in parts]
        return torch.cat(found) if found else torch.zeros(0, len(self.classes))

    def best(self, probabilities: Tensor, top: int = 1) -> list[list[Guess]]:
        """The `top` likeliest classes of every row of probabilities, the likeliest first."""
        probs, places = probabilities.topk(min(top, len(self.classes)), dim=1)
        rows = zip(probs.tolist(), places.tolist(), strict=True)
        return [[Guess(self.classes[k], p) for p, k in zip(*row, strict=True)] for row in rows]


def as_picture(picture: PathLikes | Tensor) -> Tensor:
    """A picture as it is, or read from its file."""
    return picture if isinstance(picture, Tensor) else read_picture(Path(picture))


def check_picture(picture: Tensor) -> None:
    """Refuses what is not a picture as files hold them."""
    if picture.dtype != torch.uint8 or picture.ndim != 3 or picture.shape[0] != 3:
        raise ValueError(
            f"a picture is a file or a tensor uint8 [3, H, W], got {picture.dtype} {list(picture.shape)}. "
            "Images that are normalised already go through the classifier itself: classifier(images)."
        )


def save_classifier(
    folder: Path, encoder: Encoder, head: nn.Linear, network: Network, seen: Seen, place: str = CLASSIFIER
) -> None:
    """Writes the folder classifier/ of a run: config.json as timm reads it, and model.safetensors."""
    own = own_folder(folder, place)
    described = {"encoder": asdict(network), "head": head_name(encoder.network), **seen.described}
    save_weights(own / CLASSIFIER_WEIGHTS, whole_weights(encoder.network, head), described)
    text = json.dumps(for_timm(encoder.network, head, network.name, seen) | {"samix": described}, indent=2)
    write_text(own / DESCRIPTION, text + "\n")


def load_classifier(source: PathLikes) -> Classifier:
    """The classifier of a finished run, or of such a run's folder classifier/, in eval mode on the CPU.

    Files are data: nothing in them is executed, and what does not fit is refused.
    """
    path = find_classifier(Path(source))
    tensors, about = read_weights(path)
    check(path, about, DESCRIBED, needed=("encoder", "size", "classes", "mean", "std", "head"))
    head, stats = f"{about['head']}.", Stats(tuple(about["mean"]), tuple(about["std"]))
    seen = Seen(tuple(about["classes"]), stats, about["size"], about.get("test_resize"))
    network, encoder = build_described(path, about, tensors)
    last = nn.Linear(encoder.probe(seen.size)[1], len(seen.classes))
    ours = {name: name.startswith(head) and name.removeprefix(head) in ("weight", "bias") for name in tensors}
    try:
        last.load_state_dict({name.removeprefix(head): w for name, w in tensors.items() if ours[name]})
        encoder.network.load_state_dict({name: w for name, w in tensors.items() if not ours[name]})
    except RuntimeError as error:
        raise ValueError(f"the weights in {path} do not fit {network}: {error}") from error
    return Classifier(encoder, last, seen)


def find_classifier(source: Path) -> Path:
    """The weights of the classifier in a run folder, or in a classifier's own folder."""
    for folder in (source / CLASSIFIER, source):
        if (folder / CLASSIFIER_WEIGHTS).is_file():
            return folder / CLASSIFIER_WEIGHTS
    if not source.is_dir():
        raise FileNotFoundError(f"{source} is not a run folder. Expected one such as runs/demo/samix/0.")
    if (source / CONFIG).is_file() and "method" in read_config(source / CONFIG):
        raise ValueError(
            f"{source} is a pre-training and has no classifier. Try `samix knn` or `samix linear`."
        )
    raise FileNotFoundError(
        f"{source} has no {CLASSIFIER}/{CLASSIFIER_WEIGHTS}, which a run with labels writes when it ends. "
        "Finish it with the same `samix train` command; if an older version of samix finished it, remove its "
        "summary.json before."
    )
