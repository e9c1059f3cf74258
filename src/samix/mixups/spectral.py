"""Spectral residual saliency: what of a picture's spectrum is not what its neighbourhood makes one expect.

Hou and Zhang, CVPR 2007, as 3neutronstar/GuidedMixup computes it. With F the Fourier transform of the grey
picture,

    L = log |F|,  R = L - mean of L over 3 x 3,  saliency = blur |F^-1(exp(R) F / |F|)|

at no more than 128 x 128 pixels. The blur is Gaussian, 7 x 7 with sigma 3 and mirrored borders. The paper of
2007 squares the magnitude; the code does not.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.shapes import Images, Saliency, Size

GREY = (0.2989, 0.587, 0.114)
"""Weights of red, green and blue."""
LARGEST = 128
"""Side in pixels at which larger pictures are looked at."""
RADIUS, SIGMA = 3, 3.0
TINY = 1e-10


def to_grey(pixels: Images) -> Saliency:
    """The weighted sum of three channels, or the mean of any other number."""
    if pixels.shape[1] != len(GREY):
        return pixels.mean(dim=1)
    return (pixels * pixels.new_tensor(GREY).view(-1, 1, 1)).sum(dim=1)


def spectral_residual(pixels: Images) -> Saliency:
    """The saliency of pictures, not negative, on a scale of its own; flat for a flat picture."""
    size = pixels.shape[-2:]
    grey = to_grey(pixels.detach().float())
    if max(size) > LARGEST:
        grey = resize(grey, (min(size[0], LARGEST), min(size[1], LARGEST)))
    spectrum = torch.fft.fft2(grey)
    magnitude = (spectrum.real.square() + spectrum.imag.square() + TINY).sqrt()
    log = magnitude.log()
    mean = F.avg_pool2d(F.pad(log[:, None], (1, 1, 1, 1), mode="replicate"), 3, stride=1)[:, 0]
    found = blur(torch.fft.ifft2((log - mean).exp() * spectrum / magnitude).abs())
    return found if found.shape[-2:] == size else resize(found, size)


def resize(planes: Float[Tensor, "B h w"], size: Size) -> Float[Tensor, "B y x"]:
    """Planes at another size: bilinear, and without aliasing."""
    return F.interpolate(planes[:, None], tuple(size), mode="bilinear", align_corners=False, antialias=True)[
        :, 0
    ]


def blur(planes: Saliency) -> Saliency:
    """Gaussian blur with sigma 3, 7 pixels wide or as wide as a small picture allows, borders mirrored."""
    for dim in (2, 1):
        radius = min(RADIUS, planes.shape[dim] - 1)
        offset = torch.arange(-radius, radius + 1, device=planes.device)
        kernel = (-0.5 * (offset / SIGMA).square()).exp()
        sides = (radius, radius, 0, 0) if dim == 2 else (0, 0, radius, radius)
        padded = F.pad(planes[:, None], sides, mode="reflect")
        weight = (kernel / kernel.sum()).view(1, 1, *((1, -1) if dim == 2 else (-1, 1)))
        planes = F.conv2d(padded, weight.to(planes))[:, 0]
    return planes
