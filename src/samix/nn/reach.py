"""What of a network the map of its layer l needs: everything behind the layer is dead weight to a Mixer."""

import torch
from torch import nn

from samix.nn.encoder import Encoder, find_layer


@torch.no_grad()
def names_in_reach(encoder: Encoder, size: int) -> set[str]:
    """Names of the network's weights and buffers that `encoder.maps` reads, found by running a black picture.

    They belong to the modules that begin to run before the layer's output is there, and to the norm that the
    map is seen through.
    """
    reached: set[nn.Module] = set()
    if encoder.norm is not None:
        reached |= set(find_layer(encoder.network, encoder.norm).modules())
    handles = [
        module.register_forward_pre_hook(lambda module, inputs: reached.add(module))
        for module in encoder.network.modules()
    ]
    modes = {module: module.training for module in encoder.modules()}
    encoder.eval()
    try:
        encoder.maps(encoder.black(size))
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes.items():
            module.training = training
    stored = set(encoder.network.state_dict())
    return {
        name
        for prefix, module in encoder.network.named_modules()
        if module in reached
        for own in [*module._parameters, *module._buffers]
        if (name := f"{prefix}.{own}" if prefix else own) in stored
    }
