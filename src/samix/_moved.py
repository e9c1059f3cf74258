"""Names of before 0.2: modules and names that have moved keep working for one release, with a warning.

`import samix.pairing` finds `samix.core.pairing`; `from samix.mixups import Mixup` finds `Policy`.
"""

import importlib
import sys
import warnings
from collections.abc import Iterable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {
    "attention": "nn.attention",
    "distributed": "core.distributed",
    "engine.checkpoint": "runs.checkpoint",
    "engine.config": "engine.recipe",
    "engine.health": "engine.step",
    "engine.lock": "runs.lock",
    "engine.log": "engine.summary",
    "engine.records": "runs.records",
    "engine.saved": "runs.weights",
    "errors": "core.words",
    "hooks": "nn.encoder",
    "losses.consistency": "losses.classification",
    "losses.cosine": "losses.regression",
    "losses.cross_entropy": "losses.classification",
    "losses.in_batch": "losses.contrastive",
    "losses.info_nce": "losses.contrastive",
    "losses.mask": "learned.losses",
    "losses.parents": "losses.contrastive",
    "losses.swapped": "losses.codes",
    "methods.augmixing": "methods.around.mixing",
    "methods.base": "contract",
    "methods.byol": "methods.ssl.byol",
    "methods.cluster_mixing": "learned.cluster_mixing",
    "methods.dacl": "methods.around.dacl",
    "methods.mixing": "methods.around.mixing",
    "methods.mochi": "methods.around.mochi",
    "methods.moco": "methods.ssl.moco",
    "methods.mocov3": "methods.ssl.mocov3",
    "methods.pseudo": "learned.pseudo",
    "methods.samix": "learned.samix",
    "methods.samix_c": "learned.samix_c",
    "methods.samix_i": "learned.samix_i",
    "methods.sdmp": "methods.around.sdmp",
    "methods.self_mixing": "methods.around.self_mixing",
    "methods.selfsup": "methods.ssl.base",
    "methods.simclr": "methods.ssl.simclr",
    "methods.simsiam": "methods.ssl.simsiam",
    "methods.swav": "methods.ssl.swav",
    "methods.watch": "learned.watch",
    "mixups.adjust": "learned.mixer",
    "mixups.augment_ops": "mixups.augmix.operations",
    "mixups.comixup_solver": "mixups.comixup.solver",
    "mixups.labels": "core.mixed",
    "mixups.mixed": "core.mixed",
    "mixups.puzzle_energy": "mixups.puzzlemix.energy",
    "mixups.puzzle_solver": "mixups.puzzlemix.solver",
    "mixups.puzzle_transport": "mixups.puzzlemix.transport",
    "nn.clusters": "learned.clusters",
    "nn.mixer": "learned.mixer",
    "nn.momentum": "nn.encoder",
    "nn.queue": "nn.key_queue",
    "pairing": "core.pairing",
    "pixels": "core.images",
    "precision": "losses.classification",
    "random": "core.seeds",
    "report.runs": "runs.folder",
    "schedules": "core.schedules",
    "typing": "core.shapes",
}
"""Modules that are gone, and where most of their names are now."""

NAMES = {
    "engine.config.Machine": "engine.machine.Machine",
    "engine.config.Network": "nn.zoo.Network",
    "engine.config.Optimizer": "engine.optim.Optimizer",
    "engine.config.POLICIES": "engine.training.POLICIES",
    "engine.config.Plain": "contract.Plain",
    "engine.config.Recipe": "engine.training.Training",
    "engine.config.Training": "engine.recipe.Recipe",
    "engine.saved.WEIGHTS": "runs.files.ENCODER",
    "losses.EtaBalanced": "learned.losses.EtaBalanced",
    "losses.eta_balanced": "learned.losses.eta_balanced",
    "losses.info_nce.instance_bce": "learned.losses.instance_bce",
    "losses.mask_loss": "learned.losses.mask_loss",
    "losses.mask_mean_loss": "learned.losses.mask_mean_loss",
    "losses.mask_variance": "learned.losses.mask_variance",
    "losses.pbce": "learned.losses.pbce",
    "methods.augmixing.AugMixing": "methods.around.mixing.Mixing",
    "methods.samix.AutoMixed": "learned.automix.AutoMixed",
    "methods.self_mixing.Terms": "methods.ssl.base.Terms",
    "mixups.Mixup": "mixups.base.Policy",
    "mixups.base.Mixup": "mixups.base.Policy",
    "nn.Mixer": "learned.mixer.Mixer",
    "nn.MixerConfig": "learned.mixer.MixerConfig",
    "pixels.check_images": "core.mixed.check_images",
    "precision.widened": "losses.classification.widen",
    "report.runs.Samples": "runs.samples.Samples",
    "report.runs.read_samples": "runs.samples.read_samples",
}
"""Names that are neither where they were nor where the rest of their module is."""


def find_moved(module: str, name: str) -> Any:
    """What `from samix.<module> import name` meant before 0.2; for a module's `__getattr__`."""
    old = f"{module}.{name}"
    new = NAMES.get(old) or (f"{MODULES[module]}.{name}" if module in MODULES else None)
    place, _, attribute = (new or "").rpartition(".")
    if new is None or not hasattr(found := importlib.import_module(f"samix.{place}"), attribute):
        raise AttributeError(f"module 'samix.{module}' has no attribute {name!r}")
    warnings.warn(f"samix.{old} is now samix.{new}.", DeprecationWarning, stacklevel=3)
    return getattr(found, attribute)


class Moved(ModuleType):
    """Stands where a module was."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return find_moved(self.__name__.removeprefix("samix."), name)


class MovedModules(MetaPathFinder, Loader):
    """Finds the modules that are gone."""

    def find_spec(
        self, name: str, path: Iterable[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        known = name.startswith("samix.") and name.removeprefix("samix.") in MODULES
        return ModuleSpec(name, self) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Moved(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: its names are looked up when they are asked for."""


def install() -> None:
    """Lets Python find moved modules, after all that are really there."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
