"""SmoothMix (CVPR workshops 2020, no arXiv number): the partner fades in around a point.

G(u) = exp(-|u - c|^2 / 2 sigma^2) with its peak 1 at a uniformly drawn pixel c, sigma ~ U(.25, .5) of the
height, x_mix = (1 - G) x_i + G x_j, label weight 1 - mean(G).

lam is not drawn from Beta: it encodes the width, sigma = (1 - lam) / 2 of the height, so that lam = 1 leaves
the image untouched. The label weight is the mean of the mask.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from samix.core.checks import check_fields
from samix.core.devices import send
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy


def gaussian(length: int, centre: Tensor, sigma: Tensor) -> Tensor:
    """[N, length]: a Gaussian with peak 1 along one axis; all 0 if sigma is 0."""
    distance = torch.arange(length, device=sigma.device)[None] - centre[:, None]
    sigma = sigma[:, None]
    curve = torch.exp(-0.5 * (distance / torch.where(sigma > 0, sigma, 1)) ** 2)
    return torch.where(sigma > 0, curve, 0)


def smoothmix_mask(size: Size, lam: Lam, generator: RandomSource = None) -> Mask:
    """1 - G with sigma = (1 - lam) H / 2 around a random pixel: one G per lam."""
    height, width = size
    rows = send(torch.randint(height, (len(lam),), generator=generator), lam.device)
    columns = send(torch.randint(width, (len(lam),), generator=generator), lam.device)
    sigma = (1 - lam.detach()) * height / 2
    down, across = gaussian(height, rows, sigma), gaussian(width, columns, sigma)
    return 1 - down[:, None, :, None] * across[:, None, None]  # a round Gaussian is a product of two axes


@dataclass(frozen=True, kw_only=True)
class SmoothMix(Policy):
    """The partner shows through a Gaussian."""

    alpha: float = 1.0
    """Not used, and must stay 1."""
    sigma_min: float = 0.25
    """Smallest width of the Gaussian, in units of the height."""
    sigma_max: float = 0.5
    """Largest width of the Gaussian, in units of the height; .5 is lam = 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.sigma_min <= self.sigma_max <= 0.5:
            raise ValueError(
                "mixup.sigma_min and mixup.sigma_max must satisfy 0 < sigma_min <= sigma_max <= 0.5, "
                f"got {self.sigma_min} and {self.sigma_max}."
            )
        rule = "must stay 1, because mixup.sigma_min and mixup.sigma_max say how wide the Gaussian is"
        check_fields(self, "mixup", ["alpha"], lambda value: value == 1, rule)

    @property
    def lam_weighs_labels(self) -> bool:
        """No: lam encodes a width."""
        return False

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """Draws widths sigma; lam = 1 - 2 sigma encodes them and is not the label weight."""
        return 1 - 2 * torch.empty(count).uniform_(self.sigma_min, self.sigma_max, generator=generator)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One Gaussian per lam, on the device and in the dtype of the images."""
        return smoothmix_mask(x.shape[-2:], pairing.lam, generator).to(x)
