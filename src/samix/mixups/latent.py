"""Mixing inside a network: what ManifoldMix, PatchUp and AlignMix share.

A layer is drawn per batch and its output is replaced by a mixture of the batch, in the one forward pass that
gives the outputs; the layers behind it see mixed maps. The drawn layer "input" mixes the images themselves,
as `mask` says. Hooks reach the layer, so any network serves and its own forward stays as it is. What hooks
cannot see stays out of reach: layers that are never called as modules, networks that were compiled before,
and activation checkpointing around the layer, which runs it once more after the hook has gone.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource
from samix.mixups.base import Hints, Policy
from samix.mixups.mixup import constant_mask
from samix.nn.encoder import changing_output, find_layer

LayerOutput: TypeAlias = Float[Tensor, "B ..."]

INPUT = "input"


class MixedMaps(NamedTuple):
    """A layer's mixed output."""

    maps: LayerOutput
    lam: Lam
    """The weight that the first image's label deserves, in float32."""


@dataclass(frozen=True, kw_only=True)
class LatentMixup(Policy):
    """Base of the policies that mix the output of a layer; they define `mix_maps`."""

    layers: tuple[str, ...] = (INPUT,)
    """Names of submodules, one drawn per batch; the word "input" stands for the images."""

    masks_pairs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.layers, str):
            raise ValueError(f"mixup.layers must be a tuple of names, got '{self.layers}': add a comma.")
        if not self.layers:
            raise ValueError("mixup.layers must name at least one layer, got ().")

    def draw_layer(self, generator: RandomSource = None) -> str:
        """One of `layers`, all equally likely."""
        return self.layers[int(torch.randint(len(self.layers), (1,), generator=generator))]

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """A layer's output mixed with that of the partners, and the label weight of the first."""
        raise TypeError(f"{type(self).__name__} must define mix_maps(maps, pairing, generator).")

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """How the images are mixed where the layer "input" is drawn: Mixup."""
        return constant_mask(x.shape[-2:], pairing.lam.to(x))

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Always an error: the layers' outputs cannot be mixed without a network."""
        raise ValueError(
            f"{type(self).__name__} mixes inside a network, so it cannot mix images alone. Call "
            "policy.run(network, x, pairing), or samix.Mix(...).forward(model, x, y)."
        )

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """The images mixed as if they were the output of the layer."""
        maps, lam = self.mix_maps(x, pairing, generator)
        return Mixed(maps, constant_mask(x.shape[-2:], lam.to(x)), Pairing(lam, pairing.index))

    def mix_inside(
        self, network: nn.Module, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource
    ) -> tuple[Tensor, Mixed]:
        """The outputs of one pass in which a drawn layer was mixed; only "input" changes the images."""
        # All of them, so that a wrong name shows in the first batch and not when it is drawn.
        for name in self.layers:
            if name != INPUT:
                find_layer(network, name)
        layer = self.draw_layer(generator)
        if layer == INPUT:
            mixed = super().mix(x, pairing, hints, generator)
            return network(mixed.x), mixed
        outputs, lam = self.pass_mixed(network, layer, x, pairing, generator)
        mask = constant_mask(x.shape[-2:], lam.to(x))
        return outputs, Mixed(x, mask, Pairing(lam, pairing.index))

    def pass_mixed(
        self,
        network: nn.Module,
        layer: str,
        x: Images,
        pairing: Pairing,
        generator: RandomSource,
    ) -> tuple[Tensor, Lam]:
        """One forward pass with the output of `layer` mixed, and the label weight."""
        weights: list[Tensor] = []

        def change(output: object) -> Tensor:
            if weights:
                raise RuntimeError(
                    f"layer '{layer}' is run more than once in a forward pass, so it is not clear which "
                    "output to mix; name a layer that is run once in mixup.layers."
                )
            mixed = self.mix_maps(checked_output(output, layer, len(x)), pairing, generator)
            weights.append(mixed.lam)
            return mixed.maps

        with changing_output(network, layer, change):
            outputs = network(x)
        if not weights:
            raise RuntimeError(
                f"layer '{layer}' was not run by the network's forward pass, so nothing was mixed; "
                "name a layer that is run in mixup.layers, and pass the network without torch.compile."
            )
        return outputs, weights[0]

    def checked_map(self, maps: Tensor) -> Tensor:
        """The output of a layer, refused if it is not a map."""
        if maps.ndim != 4:
            raise ValueError(
                f"{type(self).__name__} needs a layer with a map [B, C, h, w], but a layer of "
                f"{self.layers} gives {list(maps.shape)}. Name a layer with a map in mixup.layers, such as "
                "'layer4' of a ResNet."
            )
        return maps


def checked_output(output: object, layer: str, batch: int) -> Tensor:
    """What a layer gave, or an error if it cannot be mixed between images."""
    if not isinstance(output, Tensor):
        raise ValueError(
            f"layer '{layer}' gives a {type(output).__name__}, not a tensor, and cannot be mixed; "
            "name another layer in mixup.layers."
        )
    if output.shape[:1] != (batch,):
        raise ValueError(
            f"layer '{layer}' gives {list(output.shape)} for a batch of {batch}: its first dimension must "
            "be the batch. Name another layer in mixup.layers."
        )
    return output
