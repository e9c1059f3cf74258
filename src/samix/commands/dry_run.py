"""samix train NAME --dry-run: two steps on random pictures, and what the whole training would take."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from samix.commands.pace import remember_pace
from samix.engine.pretrained import PretrainedMixup
from samix.engine.recipe import Recipe
from samix.engine.rehearsal import rehearse, write_untrained
from samix.recipes.catalogue import Entry, find_entry
from samix.runs.mixers import find_mixer


def dry_run(name: str, recipe: Recipe, batch: int | None = None) -> None:
    """Rehearses a recipe and prints parameters, memory and time."""
    try:
        entry = find_entry(name)
    except ValueError:  # of a file
        entry = Entry(name, "", recipe, ())
    pictures, classes = entry._replace(recipe=recipe).size
    if recipe.encoder.weights is not None:
        print(f"(The weights {recipe.encoder.weights!r} are not read: the network stays random.)")
    with mixer_in_place(recipe) as ready:
        found = rehearse(ready, classes=classes or 1000, batch=batch)
    parameters = ", ".join(f"{role} {count:,}" for role, count in found.parameters.items())
    print(f"{name}: two steps of {found.batch} pictures of {recipe.data.size} px, loss {found.loss:.3f}")
    print(f"parameters  {parameters}")
    if found.peak_mb is not None:
        print(f"memory      {found.peak_mb:,.0f} MB at batches of {found.batch} (here {recipe.batch_size})")
    print(f"a step      {found.seconds:.2f} s, {found.batch / found.seconds:.1f} pictures/s on this machine")
    if pictures is None:
        print(f"{recipe.epochs} epochs   unknown: nobody said how many pictures {entry.data} has")
    else:
        hours = found.hours(pictures, recipe.epochs)
        print(f"{recipe.epochs} epochs  {hours:,.1f} hours on this machine at this pace, without tests")
    if entry.about and recipe == entry.recipe:
        remember_pace(name, found)


@contextmanager
def mixer_in_place(recipe: Recipe) -> Iterator[Recipe]:
    """The recipe; where it asks for the Mixer of a run that is not there, with an untrained one like it."""
    mixup = recipe.mixup
    if not isinstance(mixup, PretrainedMixup) or is_there(mixup.mixer):
        yield recipe
        return
    source = find_entry("/".join(Path(mixup.mixer or "").parts[1:3])).recipe
    with TemporaryDirectory() as folder:
        write_untrained(source, Path(folder))
        print(f"(There is no {mixup.mixer} yet: an untrained Mixer takes its place.)")
        yield replace(recipe, mixup=replace(mixup, mixer=folder))


def is_there(mixer: str | None) -> bool:
    """Whether a Mixer can be read, or must be: one that is no run of a recipe is the user's to bring."""
    parts = Path(mixer or "").parts
    if len(parts) < 3 or parts[0] != "runs":
        return True
    try:
        find_mixer(mixer)
    except FileNotFoundError:
        return False
    return True
