"""Looking into a network, and reaching into it, by the names of its layers; its code stays untouched.

Works for any `nn.Module`, a user's own as well as timm's.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from samix.errors import suggest


class Reached(Exception):
    """Carries a value out of a forward pass that need not go on."""

    def __init__(self, output: Tensor) -> None:
        self.output = output


def find_layer(network: nn.Module, layer: str) -> nn.Module:
    """The submodule of that name, also below wrappers (`layer1` finds `module.layer1`)."""
    names = [name for name, _ in network.named_modules() if name]
    if layer in names:
        return network.get_submodule(layer)
    below = [name for name in names if name.endswith(f".{layer}")]
    if below:
        return network.get_submodule(min(below, key=lambda name: name.count(".")))
    raise ValueError(f"the network has no layer {suggest(layer, sorted(names))}")


def read_layer(network: nn.Module, layer: str, x: Tensor) -> Tensor:
    """The output of the named submodule; the rest of the network is not run."""

    def stop(module: nn.Module, inputs: Any, output: Tensor) -> None:
        raise Reached(output)

    return run_until(network, find_layer(network, layer).register_forward_hook(stop), layer, x)


def read_input(network: nn.Module, layer: str, x: Tensor) -> Tensor:
    """What the named submodule is given; neither it nor the rest of the network is run."""

    def stop(module: nn.Module, inputs: Any) -> None:
        raise Reached(inputs[0])

    return run_until(network, find_layer(network, layer).register_forward_pre_hook(stop), layer, x)


def run_until(network: nn.Module, handle: RemovableHandle, layer: str, x: Tensor) -> Tensor:
    """Runs the network until a hook of the named layer, which is then removed, has `Reached` its value."""
    try:
        network(x)
    except Reached as reached:
        return reached.output
    finally:
        handle.remove()
    raise RuntimeError(f"layer '{layer}' was not run by the network's forward pass.")


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
