"""One optimizer with groups: the encoder's and the Mixer's parameters, each with its own schedule."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from timm.optim import Lamb
from torch import nn, optim

from samix.core.checks import (
    check_below_one,
    check_not_negative,
    check_positive,
    check_positive_share,
    check_share,
    check_words,
)
from samix.core.schedules import warmup_cosine
from samix.engine.lars import Lars
from samix.nn.stages import stages_of


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """How weights move. The Mixer has its own learning rate and momentum."""

    name: Literal["sgd", "adamw", "lamb", "lars"] = "sgd"
    """sgd, adamw, lamb or lars."""
    lr: float = 0.1
    """Learning rate of the encoder and its heads at the given batch size."""
    min_lr: float = 0.0
    """Where the encoder's half cosine ends."""
    weight_decay: float = 5e-4
    """Weight decay; adamw, lamb and lars spare biases and norms."""
    decay_all: bool = False
    """adamw and lamb decay biases, norms and tokens, too, as MoCo v3's transformer does."""
    momentum: float = 0.9
    """Momentum of sgd and lars."""
    warmup_epochs: float = 0.0
    """Linear warm-up."""
    warmup_start: float = 0.0
    """Where the warm-up begins, as a multiple of the learning rate."""
    beta2: float = 0.999
    """How long adamw and lamb remember squared gradients (their first beta is .9)."""
    mixer_lr: float = 0.1
    """Learning rate of the Mixer."""
    mixer_min_lr: float = 0.0
    """Where the Mixer's half cosine ends."""
    mixer_momentum: float = 0.9
    """Momentum of sgd and lars for the Mixer."""
    head_lr: float = 1.0
    """Learning rate of what follows the encoder (a classifier's heads, projectors), as a multiple of lr."""
    layer_decay: float = 1.0
    """The encoder's last stage learns this many times as fast as lr, each stage before it again so."""
    clip: float | None = None
    """Largest norm of the gradient of encoder and Mixer together; null: no clipping (lamb clips at 1)."""
    average: float | None = None
    """Momentum of an averaged copy of a classifier's weights, tested and exported beside them; null: none."""

    def __post_init__(self) -> None:
        check_words(self, "optimizer")
        check_positive(self, "optimizer", "lr", "mixer_lr", "clip", "head_lr")
        check_positive_share(self, "optimizer", "layer_decay")
        check_below_one(self, "optimizer", "momentum", "mixer_momentum", "beta2", "average")
        check_share(self, "optimizer", "warmup_start")
        check_not_negative(self, "optimizer", "min_lr", "mixer_min_lr", "weight_decay", "warmup_epochs")


MOMENTA: dict[str, Callable[[Optimizer], float]] = {
    "encoder": lambda config: config.momentum,
    "constant": lambda config: config.momentum,
    "mixer": lambda config: config.mixer_momentum,
    "head": lambda config: 0.0,
}
"""Momentum by role. A cluster head has none: its labels change all the time, and with momentum it lags so far
behind them that its loss rises above that of guessing."""


def build_optimizer(
    parameters: dict[str, list[nn.Parameter]],
    config: Optimizer,
    spared: Collection[nn.Parameter] = (),
    scales: Mapping[nn.Parameter, float] | None = None,
) -> optim.Optimizer:
    """An optimizer whose groups remember which schedule they follow (`group['role']`).

    `spared` do not decay, see `find_undecayed`; `scales` multiply the encoder's learning rate, see
    `learning_scales`.
    """
    groups = []
    for role, members in parameters.items():
        lr = config.mixer_lr if role == "mixer" else config.lr
        momentum = MOMENTA[role](config)
        extra = {"momentum": momentum} if config.name in ("sgd", "lars") else {}
        for same, scaled in split_scales(members, scales if role == "encoder" else None):
            for chosen, decay in split_decay(same, config, spared):
                group = {"params": chosen, "role": role, "lr": lr, "weight_decay": decay, **extra, **scaled}
                groups.append(group)
    if config.name == "sgd":
        return optim.SGD(groups, lr=config.lr)
    if config.name == "lars":
        return Lars(groups, lr=config.lr)
    kind = Lamb if config.name == "lamb" else optim.AdamW
    return kind(groups, lr=config.lr, betas=(0.9, config.beta2))


def split_scales(
    members: list[nn.Parameter], scales: Mapping[nn.Parameter, float] | None
) -> list[tuple[list[nn.Parameter], dict[str, float]]]:
    """Parameters by the factor of their learning rate, which their group remembers as 'scale'."""
    if not scales:
        return [(members, {})]
    found: dict[float, list[nn.Parameter]] = {}
    for parameter in members:
        found.setdefault(scales.get(parameter, 1.0), []).append(parameter)
    return [(same, {"scale": scale}) for scale, same in found.items()]


def learning_scales(
    members: list[nn.Parameter], network: nn.Module, config: Optimizer
) -> dict[nn.Parameter, float]:
    """The factor of every parameter's learning rate: `layer_decay` to the number of stages that it is away
    from the head, `head_lr` for what is not in the network; nothing where all factors are 1."""
    if config.head_lr == 1 and config.layer_decay == 1:
        return {}
    named, stages = dict(network.named_parameters()), stages_of(network)
    inside = {
        named[name]: config.layer_decay ** (len(stages) - number)
        for number, names in enumerate(stages)
        for name in names
    }
    return {parameter: inside.get(parameter, config.head_lr) for parameter in members}


def split_decay(
    members: list[nn.Parameter], config: Optimizer, spared: Collection[nn.Parameter]
) -> list[tuple[list[nn.Parameter], float]]:
    """Parameters with their weight decay: SGD decays all, the others no biases, norms, scalars, `spared`,
    unless `decay_all` says so."""
    if config.name == "sgd" or config.decay_all:
        return [(members, config.weight_decay)]
    chosen = {p for p in members if p.ndim > 1}.difference(spared)
    decayed, free = [p for p in members if p in chosen], [p for p in members if p not in chosen]
    return [(group, decay) for group, decay in ((decayed, config.weight_decay), (free, 0.0)) if group]


def find_undecayed(model: nn.Module) -> set[nn.Parameter]:
    """What networks of timm ask to spare: class tokens, position embeddings, tables of relative positions."""
    found = set()
    for module in model.modules():
        asked = module.no_weight_decay() if hasattr(module, "no_weight_decay") else ()  # type: ignore[operator]
        found |= {p for name, p in module.named_parameters() if name in asked}
    return found


def set_learning_rates(optimizer: optim.Optimizer, config: Optimizer, progress: float, epochs: int) -> None:
    """Gives every group the learning rate of its schedule: linear warm-up, then half a cosine.

    Groups of the role 'constant' keep theirs (SimSiam's predictor).
    """
    warmup = min(config.warmup_epochs / epochs, 1.0)
    for group in optimizer.param_groups:
        if group["role"] == "constant":
            continue
        mixer = group["role"] == "mixer"
        start, end = (config.mixer_lr, config.mixer_min_lr) if mixer else (config.lr, config.min_lr)
        lr = warmup_cosine(progress, start, end, warmup, config.warmup_start)
        group["lr"] = lr * group.get("scale", 1.0)
