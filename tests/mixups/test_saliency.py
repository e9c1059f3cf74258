"""Fine-grained saliency as SaliencyMix uses it: against a loop, and against OpenCV where it is installed."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.mixups import saliency
from samix.mixups.saliency import blur, fine_grained_saliency, on_off, to_grey

RADII = (12, 24, 48, 28, 56, 112)


def noise(batch: int, size: tuple[int, int], seed: int = 0) -> Tensor:
    return torch.randint(
        256, (batch, 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )


def clouds(batch: int, size: tuple[int, int], seed: int = 0) -> Tensor:
    """Smooth colours with a little noise, nearer to photographs than noise is."""
    draw = torch.Generator().manual_seed(seed)
    smooth = F.interpolate(torch.rand(batch, 3, 4, 5, generator=draw), size=size, mode="bilinear")
    return ((smooth + 0.1 * torch.randn(smooth.shape, generator=draw)).clamp(0, 1) * 255).byte()


def dot_in_a_pit() -> Tensor:
    """Above the mean at small radii and far below it at large ones: on' + off' > 255 at the dot."""
    steps = torch.arange(224) - 112
    distance = torch.maximum(steps[:, None].abs(), steps.abs())
    grey = ((distance - 30) / 80).clamp(0, 1) * 255
    grey[distance < 3] = 130
    return grey.round().byte().expand(1, 3, 224, 224).contiguous()


def mirror(position: int, length: int) -> int:
    return abs(position) if position < length else 2 * length - 2 - position


def loop_blur(grey: list[list[int]]) -> list[list[int]]:
    height, width = len(grey), len(grey[0])

    def at(y: int, x: int) -> int:
        total = 8
        for dy, wy in ((-1, 1), (0, 2), (1, 1)):
            for dx, wx in ((-1, 1), (0, 2), (1, 1)):
                total += wy * wx * grey[mirror(y + dy, height)][mirror(x + dx, width)]
        return total // 16

    return [[at(y, x) for x in range(width)] for y in range(height)]


def loop_saliency(picture: Tensor) -> list[list[int]]:
    """One picture [3, H, W], pixel by pixel and in whole numbers."""
    first, second, third = picture.tolist()
    height, width = len(first), len(first[0])
    grey = [
        # .114, .587 and .299 in steps of 2^-15; in decimals a pixel in a thousand would round the other way
        [
            (3735 * first[y][x] + 19235 * second[y][x] + 9798 * third[y][x] + 2**14) // 2**15
            for x in range(width)
        ]
        for y in range(height)
    ]
    grey = loop_blur(loop_blur(grey))
    on, off = ([[0] * width for _ in range(height)] for _ in range(2))
    for y in range(height):
        for x in range(width):
            for r in RADII:
                rows = grey[max(y - r + 1, 0) : y + r + 1]
                window = [row[max(x - r + 1, 0) : x + r + 1] for row in rows]
                others, value = len(window) * len(window[0]) - 1, grey[y][x]
                rest = sum(map(sum, window)) - value
                on[y][x] += max(value * others - rest, 0) // others
                off[y][x] += max(rest - value * others, 0) // others
    most = [max(max(row) for row in plane) or 1 for plane in (on, off)]
    return [
        [min(255 * on[y][x] // most[0] + 255 * off[y][x] // most[1], 255) for x in range(width)]
        for y in range(height)
    ]


@pytest.mark.parametrize("picture", [noise, clouds])
@pytest.mark.parametrize("size", [(8, 8), (12, 20), (27, 9), (30, 28)])
def test_value_against_a_loop(picture, size):
    pixels = picture(2, size)
    assert fine_grained_saliency(pixels).tolist() == [loop_saliency(one) for one in pixels]


def test_value_a_peak_above_255_is_cut_off():
    """OpenCV wraps it to 8, see below."""
    pixels = dot_in_a_pit()
    on, off = on_off(blur(blur(to_grey(pixels))))
    assert float((on + off)[0, 112, 112]) == 264
    assert divmod(int(fine_grained_saliency(pixels)[0].argmax()), 224) == (112, 112)


@pytest.mark.parametrize("picture", [noise, clouds])
@pytest.mark.parametrize("size", [(8, 8), (12, 20), (32, 32), (64, 48), (160, 160)])
def test_value_equals_opencv_on_every_pixel(picture, size):
    pixels = picture(4, size, seed=1)
    for ours, one in zip(fine_grained_saliency(pixels), pixels, strict=True):
        assert torch.equal(ours, opencv_saliency(one))


def test_value_opencv_wraps_what_we_cut_off():
    pixels = dot_in_a_pit()
    theirs = opencv_saliency(pixels[0])
    on, off = on_off(blur(blur(to_grey(pixels))))
    assert torch.equal((on + off)[0].int() % 256, theirs.int())
    assert int(theirs[112, 112]) == 264 - 256
    assert int((fine_grained_saliency(pixels)[0] != theirs).sum()) == 1


def opencv_saliency(picture: Tensor) -> Tensor:
    """OpenCV's map of a picture [3, H, W], handed over as RGB like the original; back in 8 bits."""
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2, "saliency"):
        pytest.skip("this OpenCV was built without contrib modules")
    routine = cv2.saliency.StaticSaliencyFineGrained_create()
    _, found = routine.computeSaliency(picture.permute(1, 2, 0).contiguous().numpy())
    return (torch.from_numpy(found) * 255).round().byte()  # floats in [0, 1] since OpenCV 3.4.3


def test_value_sums_of_a_large_picture_stay_exact():
    """Beyond 2^24 float32 would lose units; the oracle counts in 64-bit integers."""
    draw = torch.Generator().manual_seed(2)
    grey = torch.randint(236, 256, (1, 300, 290), generator=draw)
    corners = F.pad(grey.cumsum(1).cumsum(2), (1, 0, 1, 0))[0]
    on, off = torch.zeros(2, 300, 290, dtype=torch.long)
    for r in RADII:
        top, bottom, left, right = (*ends(300, r), *ends(290, r))
        count = (bottom - top)[:, None] * (right - left)
        total = corners[bottom] - corners[top]
        difference = count * grey[0] - (total[:, right] - total[:, left])
        on += difference.clamp(min=0) // (count - 1)
        off += (-difference).clamp(min=0) // (count - 1)
    expected = torch.stack([255 * on // on.max(), 255 * off // off.max()])
    assert torch.equal(torch.cat(on_off(grey.float())).long(), expected)


def ends(length: int, radius: int) -> tuple[Tensor, Tensor]:
    position = torch.arange(length)
    return (position - radius + 1).clamp(min=0), (position + radius + 1).clamp(max=length)


def test_value_the_first_channel_weighs_least():
    """The channels are read as blue, green, red: an RGB picture's red weighs .114 and its blue .299."""
    pure = 255 * torch.eye(3, dtype=torch.uint8)[:, :, None, None].expand(3, 3, 8, 8)
    assert to_grey(pure)[:, 0, 0].tolist() == [29, 150, 76]
    pixels = noise(8, (32, 32))
    exact = (pixels.double() * torch.tensor([0.114, 0.587, 0.299]).view(1, 3, 1, 1)).sum(dim=1)
    assert float((to_grey(pixels) - exact).abs().max()) < 0.505


@pytest.mark.parametrize("value", [0, 7, 255])
def test_value_a_flat_picture_has_no_saliency(value):
    assert (fine_grained_saliency(torch.full((2, 3, 20, 12), value, dtype=torch.uint8)) == 0).all()
    assert all((part == 0).all() for part in on_off(torch.full((2, 20, 12), float(value))))


@pytest.mark.parametrize("picture", [noise, clouds])
def test_value_on_or_off_has_its_maximum_at_the_first_peak(picture):
    pixels = picture(20, (32, 40))
    peaks = fine_grained_saliency(pixels).flatten(1).argmax(dim=1, keepdim=True)
    on, off = (part.flatten(1).gather(1, peaks) for part in on_off(blur(blur(to_grey(pixels)))))
    assert ((on == 255) | (off == 255)).all()


def test_shape_and_dtype():
    for batch in (0, 1, 3):
        found = fine_grained_saliency(noise(batch, (9, 14)))
        assert found.shape == (batch, 9, 14) and found.dtype == torch.uint8


def test_invariant_a_picture_does_not_depend_on_its_batch(monkeypatch):
    pixels = clouds(5, (16, 24))
    together = fine_grained_saliency(pixels)
    monkeypatch.setattr(saliency, "CHUNK", 2 * 16 * 24)  # pieces of 2, 2 and 1
    assert torch.equal(fine_grained_saliency(pixels), together)
    for one, expected in zip(pixels, together, strict=True):
        assert torch.equal(fine_grained_saliency(one[None])[0], expected)


def test_invariant_nothing_is_changed_in_place():
    pixels = noise(2, (12, 12))
    copy = pixels.clone()
    fine_grained_saliency(pixels)
    assert pixels._version == 0 and torch.equal(pixels, copy)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_error_pixels_must_be_bytes(dtype):
    """The trap: SaliencyMix's code reads the bytes of normalised floats."""
    with pytest.raises(TypeError, match=rf"needs 8-bit pixels \(torch.uint8\), got {dtype}.*round"):
        fine_grained_saliency(noise(1, (8, 8)).to(dtype))


def test_value_grey_of_other_than_three_channels_is_their_mean():
    one, four = torch.randint(256, (2, 1, 5, 6)).byte(), torch.randint(256, (2, 4, 5, 6)).byte()
    assert torch.equal(to_grey(one), one[:, 0].float())
    assert float((to_grey(four) - four.float().mean(dim=1)).abs().max()) <= 0.5
    assert fine_grained_saliency(four).shape == (2, 5, 6)
