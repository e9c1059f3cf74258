"""Video [B, C, T, H, W] and volumes [B, C, D, H, W], mixed by policies that see images [B, C, H, W].

One mask for all frames: frames count as further channels. A mask per frame: frames count as further images,
whose partner is the same frame of the partner's clip. torchvision's `Video` has frames before channels.
"""

import torch
from torch import Tensor

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import RandomSource
from samix.mixups import Policy
from samix.mixups.switch import Choice


def mix_clips(
    policy: Policy, x: Tensor, pairing: Pairing, generator: RandomSource, time: int | None
) -> Mixed:
    """The mixed clips, every frame along axis `time` under a mask of its own, or all under one (None).

    Their masks have the clips' five axes, of length 1 where all frames share them.
    """
    needs = policy.needed(pairing)
    if needs:
        raise ValueError(
            f"{type(policy).__name__} looks at {', '.join(needs)} of images [B, C, H, W]; got "
            f"{list(x.shape)}. Clips need a policy that mixes blindly: mixup, cutmix, fmix, gridmix, ..."
        )
    if time is None:
        return mix_whole(policy, x, pairing, generator)
    return mix_frames(policy, x, pairing, generator, time)


def mix_whole(policy: Policy, x: Tensor, pairing: Pairing, generator: RandomSource) -> Mixed:
    """All frames of a clip under one mask."""
    mixed = policy(x.flatten(1, 2), pairing, None, generator)
    sources = mixed.sources

    def folded(planes: Tensor) -> tuple[Tensor, Tensor]:
        assert sources is not None
        own, other = sources(planes.flatten(1, 2))
        return own.view_as(planes), other.view_as(planes)

    return mixed._replace(
        x=mixed.x.unflatten(1, x.shape[1:3]),
        mask=mixed.mask[:, :, None],
        sources=None if sources is None else folded,
    )


def mix_frames(policy: Policy, x: Tensor, pairing: Pairing, generator: RandomSource, time: int) -> Mixed:
    """Every frame under a mask of its own; the label weight is the mean over the frames, on axis `time`."""
    frames = x.movedim(time, 1)  # [B, T, C, H, W]
    shape = frames.shape[:2]
    mixed = policy(frames.flatten(0, 1), pair_frames(pairing, *shape), None, generator)
    if mixed.sources is not None or mixed.parents is not None:
        raise ValueError(f"{type(policy).__name__} mixes clips as a whole only: leave per_frame out.")

    def unfold(values: Tensor) -> Tensor:
        return values.unflatten(0, shape).movedim(1, time)

    lam = mixed.pairing.lam.unflatten(0, shape).mean(dim=1)
    return Mixed(unfold(mixed.x), unfold(mixed.mask), Pairing(lam, pairing.index))


def pair_frames(pairing: Pairing, batch: int, count: int) -> Pairing:
    """The pairing of `count` frames per clip: frame t of a clip with frame t of its partner."""
    lam = pairing.lam.expand(batch).repeat_interleave(count)
    frame = torch.arange(count, device=pairing.index.device)
    frames = pairing._replace(lam=lam, index=(pairing.index[:, None] * count + frame).flatten())
    if isinstance(frames, Choice) and frames.member is not None and len(frames.member) > 1:
        frames.member = frames.member.repeat_interleave(count)
    return frames
