"""The Mixer of a run as the run itself uses it, as a policy for any two pictures."""

from dataclasses import replace
from pathlib import Path

from samix import load_mixer
from samix.commands.fields import from_yaml
from samix.engine.pretrained import PretrainedMixup
from samix.engine.recipe import policy_name
from samix.learned import FrozenMixer


def mixer_of_run(run: Path) -> FrozenMixer:
    """The run's Mixer, frozen; its masks are adjusted to lam as in the run's own pictures.

    A run that adjusts less often than not shows masks as they are painted.
    """
    recipe = from_yaml(run / "config.yaml")
    if isinstance(recipe.mixup, PretrainedMixup) and recipe.mixup.mixer is not None:
        return replace(load_mixer(recipe.mixup.mixer), adjusting=recipe.mixup.adjusting)
    if not recipe.mixup.learned:
        name = policy_name(recipe)
        raise ValueError(
            f"{run} learns no masks: its mixup is {name!r}. Mixers come out of runs with a learned mixup."
        )
    adjusting = recipe.mixup.adjusting
    painted = replace(adjusting, margin=1.0)  # every mean is near enough to lam
    return replace(load_mixer(run), adjusting=adjusting if adjusting.prob >= 0.5 else painted)
