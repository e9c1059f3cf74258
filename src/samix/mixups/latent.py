"""Mixing inside a network: what ManifoldMix, PatchUp and AlignMix share.

For each batch one layer is drawn. In the forward pass its output is replaced by a mixture of the batch, and
the layers behind it see mixed maps. If the drawn layer is "input", the images themselves are mixed by `mask`.

A hook changes the layer's output, so any network will do, and its forward method stays as it is. Hooks do not
work for layers that are never called as modules, for compiled networks, and for layers under activation
checkpointing (which runs them again after the hook is gone).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.core.checks import check_fields
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource
from samix.mixups.base import Hints, Policy
from samix.mixups.mixup import constant_mask
from samix.nn.encoder import changing_output, find_layer

LayerOutput: TypeAlias = Float[Tensor, "B ..."]

INPUT = "input"
"""Stands for the images in a list of layers."""


class MixedMaps(NamedTuple):
    """The mixed output of a layer."""

    maps: LayerOutput
    lam: Lam
    """Weight of the first image's label, in float32."""


@dataclass(frozen=True, kw_only=True)
class LatentMixup(Policy):
    """Base of the policies that mix the output of a layer; they define `mix_maps`."""

    layers: tuple[str, ...] = (INPUT,)
    """Names of submodules, one drawn per batch; the word "input" stands for the images."""

    masks_pairs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "must be a tuple of names (add a comma)"
        check_fields(self, "mixup", ["layers"], lambda value: not isinstance(value, str), rule)
        check_fields(self, "mixup", ["layers"], bool, "must name at least one layer")

    def draw_layer(self, generator: RandomSource = None) -> str:
        """Draws one of `layers`, all equally likely."""
        return self.layers[int(torch.randint(len(self.layers), (1,), generator=generator))]

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """Mixes a layer's output with that of the partners; also returns the label weight."""
        raise TypeError(f"{type(self).__name__} must define mix_maps(maps, pairing, generator).")

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The mask that is used if the layer "input" is drawn: that of Mixup."""
        return constant_mask(x.shape[-2:], pairing.lam.to(x))

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Always raises an error: without a network there is no layer to mix."""
        raise ValueError(
            f"{type(self).__name__} mixes inside a network, so it cannot mix images alone. Call "
            "policy.run(network, x, pairing), or samix.Mix(...).forward(model, x, y)."
        )

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Mixes the images as if they were the output of a layer."""
        maps, lam = self.mix_maps(x, pairing, generator)
        return Mixed(maps, constant_mask(x.shape[-2:], lam.to(x)), Pairing(lam, pairing.index))

    def mix_inside(
        self, network: nn.Module, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource
    ) -> tuple[Tensor, Mixed]:
        """Draws a layer and runs the network with its output mixed; only "input" changes the images."""
        # Checks all names, so that a wrong one is found in the first batch and not when it is drawn.
        for name in self.layers:
            if name != INPUT:
                find_layer(network, name)
        layer = self.draw_layer(generator)
        if layer == INPUT:
            mixed = super().mix(x, pairing, hints, generator)
            return network(mixed.x), mixed
        outputs, lam = self.run_mixed(network, layer, x, pairing, generator)
        mask = constant_mask(x.shape[-2:], lam.to(x))
        return outputs, Mixed(x, mask, Pairing(lam, pairing.index))

    def run_mixed(
        self,
        network: nn.Module,
        layer: str,
        x: Images,
        pairing: Pairing,
        generator: RandomSource,
    ) -> tuple[Tensor, Lam]:
        """Runs the network with the output of `layer` mixed; also returns the label weight."""
        weights: list[Tensor] = []

        def change(output: object) -> Tensor:
            if weights:
                raise RuntimeError(
                    f"layer '{layer}' is run more than once in a forward pass, so it is not clear which "
                    "output to mix; name a layer that is run once in mixup.layers."
                )
            mixed = self.mix_maps(check_output(output, layer, len(x)), pairing, generator)
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

    def check_map(self, maps: Tensor) -> Tensor:
        """Returns the output of a layer; raises an error if it is not a map [B, C, h, w]."""
        if maps.ndim != 4:
            raise ValueError(
                f"{type(self).__name__} needs a layer with a map [B, C, h, w], but a layer of "
                f"{self.layers} gives {list(maps.shape)}. Name a layer with a map in mixup.layers, such as "
                "'layer4' of a ResNet."
            )
        return maps


def check_output(output: object, layer: str, batch: int) -> Tensor:
    """Returns the output of a layer; raises an error if it is not a tensor with one row per image."""
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
