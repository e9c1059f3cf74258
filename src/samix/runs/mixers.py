"""Trained Mixers for everybody (SAMix-P): by the name of a shipped one, from a run, a file or the Hub."""

from os import PathLike
from pathlib import Path

from samix.core.words import suggest
from samix.learned.frozen import FrozenMixer
from samix.runs.files import MIXER
from samix.runs.hub import PREFIX, fetch_mixer
from samix.runs.mixer_file import build_policy, read_mixer_file
from samix.runs.openmixup import load_official

SHIPPED = Path(__file__).parents[1] / "mixers"
"""Mixers that come with samix: NAME.safetensors, each with its card NAME.md."""
DEFAULT = "tiny"
"""The Mixer of those who name none."""
ALLOWED = (
    f"a run folder with {MIXER}, which a run with a learned mixup writes when it ends, such a file, an "
    f"official checkpoint (.pth) or {PREFIX}owner/name[@revision]"
)


def shipped_mixers() -> dict[str, Path]:
    """The Mixers that come with this samix, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.safetensors"))}


def load_mixer(source: str | PathLike[str] | None = None) -> FrozenMixer:
    """A trained Mixer, frozen, as a policy: `Mix(load_mixer("tiny"), classes=12)`.

    `source` is the name of a shipped Mixer (None: 'tiny'), a run folder, a mixer.safetensors, an official
    checkpoint, or hf://owner/name[@revision]. A word that names a shipped Mixer is that Mixer; a folder of
    the same name is ./word. Files are data: nothing in them is executed, and what does not fit is refused.
    """
    path = find_mixer(source)
    if is_pickle(path):
        return load_official(path)
    return build_policy(read_mixer_file(path), path)


def find_mixer(source: str | PathLike[str] | None = None) -> Path:
    """The file that a source stands for."""
    known = shipped_mixers()
    if source is None and DEFAULT not in known:
        raise FileNotFoundError(f"this samix comes without the Mixer '{DEFAULT}', so name one: {ALLOWED}.")
    source = DEFAULT if source is None else source
    if isinstance(source, str) and source in known:
        return known[source]
    if isinstance(source, str) and source.startswith(PREFIX):
        return fetch_mixer(source)
    path = Path(source) / MIXER if Path(source).is_dir() else Path(source)
    if path.is_file():
        return path
    if isinstance(source, str) and known and Path(source).name == source and not Path(source).suffix:
        raise FileNotFoundError(f"unknown Mixer {suggest(source, known)} Or name {ALLOWED}.")
    raise FileNotFoundError(f"there is no Mixer at {source}: expected {ALLOWED}.")


def is_pickle(path: Path) -> bool:
    """Whether a file is one of torch.save: a zip archive or, of old versions, a bare pickle."""
    with path.open("rb") as file:
        start = file.read(4)
    return start == b"PK\x03\x04" or start[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
