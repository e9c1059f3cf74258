"""Encoders: a network, the map of its layer l that the Mixer reads, and the slow copy of it, Eq. (14).

Layers are reached by their names, in any `nn.Module`, a user's own as well as timm's. The pass for a map
stops right behind its layer, so the Mixer's features never pay for the stages above it.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.core.shapes import Features, Images, Maps, Size
from samix.core.words import suggest
from samix.nn.conventions import as_logits, as_tensor, image_channels, patch_grid

AnyNetwork = TypeVar("AnyNetwork", bound=nn.Module)


def as_map(output: Any, size: Size, *, channels_last: bool = False, prefix_tokens: int = 0) -> Maps:
    """A layer's output for pictures of this size as [B, C, h, w]: from [B, h, w, C], or from tokens.

    Tokens are [B, prefix + h w, C].
    """
    if not isinstance(output, Tensor):
        raise ValueError(
            f"the Mixer needs a layer that gives one tensor; this one gives a {type(output).__name__}. "
            "Name a layer inside it."
        )
    if output.ndim == 3:
        tokens = output[:, prefix_tokens:]
        grid = patch_grid(tokens.shape[1], size)
        if grid is None:
            raise ValueError(
                f"the layer gives {tokens.shape[1]} tokens behind {prefix_tokens} prefix tokens, which is "
                f"not a square grid, nor one of square patches of {size[0]} x {size[1]} pixels; name a layer "
                "with a map, or set prefix_tokens."
            )
        return tokens.transpose(1, 2).unflatten(2, grid)
    if output.ndim != 4:
        raise ValueError(
            f"the Mixer needs a layer with a spatial map [B, C, h, w] or tokens [B, n, C]; "
            f"this one gives {list(output.shape)}. Name an earlier layer."
        )
    return output.permute(0, 3, 1, 2) if channels_last else output


class Encoder(nn.Module):
    """A network x -> [B, dim], and the name of the layer whose map the Mixer reads.

    `norm` names the layer that normalises the network's own output, for networks whose tokens grow from
    block to block without it. `head` names the last layer of a classifier: the encoder then gives what that
    layer is given.
    """

    def __init__(
        self,
        network: nn.Module,
        layer: str,
        *,
        channels_last: bool = False,
        prefix_tokens: int = 0,
        norm: str | None = None,
        head: str | None = None,
    ) -> None:
        super().__init__()
        find_layer(network, layer)
        for name in (norm, head):
            if name is not None:
                find_layer(network, name)
        if not isinstance(prefix_tokens, int) or isinstance(prefix_tokens, bool) or prefix_tokens < 0:
            raise ValueError(f"prefix_tokens must be a whole number from 0 on, got {prefix_tokens!r}.")
        self.network, self.layer, self.norm, self.head = network, layer, norm, head
        self.channels_last, self.prefix_tokens = channels_last, prefix_tokens
        self.still: tuple[str, ...] = ()
        self.norms_still = False

    def hold(self, still: tuple[str, ...], *, norms: bool) -> None:
        """Keeps modules of the network, by name, and if wanted every batch norm in eval mode from now on."""
        self.still, self.norms_still = still, norms
        self.train(self.training)

    def train(self, mode: bool = True) -> "Encoder":
        """Training mode, but for what is held still."""
        super().train(mode)
        for name in self.still:
            self.network.get_submodule(name).eval()
        if self.norms_still:
            for module in self.network.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self

    def forward(self, x: Images) -> Features:
        return self.output(x)

    def output(self, x: Images) -> Any:
        """What the network gives, or gives to its head; the probe tells whether these are features."""
        if self.head is not None:
            return read_input(self.network, self.head, x)
        return as_logits(self.network(x))

    def maps(self, x: Images) -> Maps:
        """The layer's map [B, C, h, w], without running what lies behind it."""
        return self.read_map(read_layer(self.network, self.layer, x), x)

    def output_and_maps(self, x: Images) -> tuple[Features, Maps]:
        """The output and, from the same pass, the layer's map [B, C, h, w], detached."""
        passed: list[Tensor] = []

        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            passed.append(as_tensor(output).detach().clone())  # the next layer may write into its input

        with one_more_hook(find_layer(self.network, self.layer), "_forward_hooks", keep):
            features = self.output(x)
        with torch.no_grad():
            return features, self.read_map(passed[0], x)

    def read_map(self, output: Any, x: Images) -> Maps:
        """The map that the layer's output for the images is, normalised where the tokens are."""
        if self.norm is not None:
            output = find_layer(self.network, self.norm)(output)
        return self.as_map(output, x)

    def as_map(self, output: Any, x: Images) -> Maps:
        """What a layer gave for the images, as a map."""
        return as_map(
            output, x.shape[-2:], channels_last=self.channels_last, prefix_tokens=self.prefix_tokens
        )

    def energy(self, x: Images) -> Float[Tensor, "B 1 h w"]:
        """How strongly the last map answers at each place: the norm over its channels, less its smallest.

        A network that does not tell its last map (`forward_features`, as timm's do) is asked at the layer.
        """
        features = getattr(self.network, "forward_features", None)
        maps = self.maps(x) if features is None else self.as_map(features(x), x)
        norms = maps.float().norm(dim=1, keepdim=True)
        return norms - norms.amin(dim=(2, 3), keepdim=True)

    def black(self, size: int | Size) -> Images:
        """One black picture where, and of the type, the network's weights are; `size` its side or sides."""
        return torch.zeros(1, image_channels(self.network), *sides_of(size)).to(
            next(self.network.parameters())
        )

    @torch.no_grad()
    def probe(self, size: int | Size = 32) -> tuple[int, int]:
        """(channels of the map, width of the output), found by running one black image."""
        modes = {module: module.training for module in self.modules()}
        x = self.black(size)
        self.eval()
        try:
            maps, output = self.maps(x), self.output(x)
        except (RuntimeError, AssertionError, IndexError, TypeError, KeyError) as error:
            raise ValueError(
                f"the network cannot run a picture {list(x.shape)}: {str(error).splitlines()[0]} "
                "Networks made for another size need size=."
            ) from error
        finally:
            for module, training in modes.items():
                module.training = training
        if not isinstance(output, Tensor) or output.ndim != 2:
            shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            what = "the network must give" if self.head is None else f"its head {self.head!r} must be given"
            raise ValueError(f"{what} one row per picture, a tensor [B, K]; got {shape}.")
        if x.shape[2] == x.shape[3] and maps.shape[2] != maps.shape[3]:
            raise ValueError(
                f"layer {self.layer!r} gives {list(maps.shape)} for a square picture: "
                "if its maps are [B, h, w, C], pass channels_last=True."
            )
        return maps.shape[1], output.shape[1]


def sides_of(size: int | Size) -> Size:
    """Height and width out of one number for both, or two."""
    sides = (size, size) if isinstance(size, int) else size
    if not isinstance(sides, tuple | list) or len(sides) != 2 or not all(map(is_side, sides)):
        raise ValueError(f"size must be a side in pixels, or height and width, from 1 to 4096; got {size!r}.")
    return sides[0], sides[1]


def is_side(side: object) -> bool:
    """Whether a picture may be so high or wide."""
    return isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= 4096


def momentum_copy(network: AnyNetwork) -> AnyNetwork:
    """A copy of a network that takes no gradient."""
    return copy.deepcopy(network).requires_grad_(False)


@torch.no_grad()
def momentum_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    """theta_k <- m theta_k + (1 - m) theta_q over all parameters, SAMix Eq. (14).

    Buffers stay the target's own: its batch-norm statistics come from its own forward passes.
    """
    torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), 1 - momentum)


class Reached(Exception):
    """Carries a value out of a forward pass that need not go on."""

    def __init__(self, output: Any) -> None:
        self.output = output


def find_layer(network: nn.Module, layer: str) -> nn.Module:
    """The submodule of that name, also below wrappers (`layer1` finds `module.layer1`)."""
    if not isinstance(layer, str):
        raise ValueError(f"a layer is a name such as 'layer4', got {layer!r}.")
    names = [name for name, _ in network.named_modules() if name]
    if layer in names:
        return network.get_submodule(layer)
    below = [name for name in names if name.endswith(f".{layer}")]
    if below:
        return network.get_submodule(min(below, key=lambda name: name.count(".")))
    raise ValueError(f"the network has no layer {suggest(layer, sorted(names))}")


def read_layer(network: nn.Module, layer: str, x: Tensor) -> Any:
    """The output of the named submodule; the rest of the network is not run."""

    def stop(module: nn.Module, inputs: Any, output: Any) -> None:
        raise Reached(as_tensor(output))

    return run_until(network, layer, "_forward_hooks", stop, x)


def read_input(network: nn.Module, layer: str, x: Tensor) -> Tensor:
    """What the named submodule is given; neither it nor the rest of the network is run."""

    def stop(module: nn.Module, inputs: Any) -> None:
        raise Reached(inputs[0])

    return run_until(network, layer, "_forward_pre_hooks", stop, x)


def run_until(network: nn.Module, layer: str, kind: str, stop: Callable[..., None], x: Tensor) -> Any:
    """Runs the network until `stop`, for this pass the last hook of its kind, has `Reached` its value."""
    with one_more_hook(find_layer(network, layer), kind, stop):
        try:
            network(x)
        except Reached as reached:
            return reached.output
    raise RuntimeError(f"layer '{layer}' was not run by the network's forward pass.")


@contextmanager
def one_more_hook(module: nn.Module, kind: str, hook: Callable[..., None]) -> Iterator[None]:
    """While it lasts, the module has one more hook, the last of its kind.

    The module holds other hooks meanwhile: torch.compile can trace that, but no registration of a hook. It
    would put the module's own back as a plain dict, which takes no hooks any more, so it is given a copy.
    """
    hooks = getattr(module, kind)
    setattr(module, kind, OrderedDict([*hooks.items(), (-1, hook)]))
    try:
        yield
    finally:
        setattr(module, kind, OrderedDict(hooks) if torch.compiler.is_compiling() else hooks)


@contextmanager
def changing_output(network: nn.Module, layer: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """While it lasts, the named layer gives `change(output)` instead of its output."""

    def replace(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        return change(output)

    handle = find_layer(network, layer).register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()
