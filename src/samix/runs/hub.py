"""The Hugging Face Hub: a Mixer fetched by its address, and a folder with one pushed to it.

huggingface_hub comes with timm; it is imported when the Hub is asked.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from samix.runs.card import loading
from samix.runs.files import MIXER, write_text

PREFIX = "hf://"
CARD = "README.md"
"""What the Hub shows as a model's page."""
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


class Address(NamedTuple):
    """A repository on the Hub."""

    repo: str
    """owner/name."""
    revision: str | None
    """Branch, tag or commit; None: the newest."""


def check_repo(repo: str) -> str:
    """Refuses what cannot be owner/name."""
    parts = repo.split("/")
    if len(parts) != 2 or ".." in repo or "--" in repo or not all(NAME.fullmatch(part) for part in parts):
        raise ValueError(
            f"a repository on the Hub is called owner/name, of letters, digits, '-', '_', '.'; got {repo!r}."
        )
    return repo


def parse_address(text: str) -> Address:
    """owner/name and the revision of hf://owner/name[@revision]."""
    repo, at, revision = text.removeprefix(PREFIX).partition("@")
    check_repo(repo)
    if at and (".." in revision or not REVISION.fullmatch(revision)):
        raise ValueError(f"a revision is a branch, a tag or a commit; got {revision!r} in {text!r}.")
    return Address(repo, revision if at else None)


def fetch_mixer(text: str) -> Path:
    """The file mixer.safetensors of hf://owner/name[@revision], downloaded once into the Hub's cache."""
    address = parse_address(text)
    from huggingface_hub import hf_hub_download  # late: slow to import, and most never need it

    with hub_errors(address.repo):
        return Path(hf_hub_download(address.repo, MIXER, revision=address.revision))


def push_mixer(source: Path, repo: str, *, private: bool = False) -> str:
    """Uploads a Mixer's file and its card, nothing else, and returns the address of their page.

    `source` is a folder as `samix export` writes it, or NAME.safetensors with NAME.md beside it. The
    repository is made if there is none.
    """
    check_repo(repo)
    weights, card = find_pair(source)
    from huggingface_hub import HfApi  # late, see above

    with tempfile.TemporaryDirectory() as folder, hub_errors(repo):
        shutil.copyfile(weights, Path(folder, MIXER))
        text = card.read_text(encoding="utf-8")
        write_text(Path(folder, CARD), text.replace(loading(weights.name), loading(PREFIX + repo)))
        api = HfApi()
        url = api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=folder, commit_message="A Mixer, by samix export")
    return str(url)


def find_pair(source: Path) -> tuple[Path, Path]:
    """The weights and the card in a folder, or a file and the card beside it."""
    weights = source / MIXER if source.is_dir() else source
    card = source / CARD if source.is_dir() else source.with_suffix(".md")
    for path in (weights, card):
        if not path.is_file():
            raise FileNotFoundError(f"there is no {path}: `samix export RUN` writes a Mixer and its card.")
    return weights, card


@contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """Says in one sentence what the Hub, or the way to it, refused."""
    from huggingface_hub import errors

    try:
        yield
    except errors.LocalTokenNotFoundError as error:
        raise OSError("you are not logged in to the Hub: run `hf auth login`, or set HF_TOKEN.") from error
    except errors.GatedRepoError as error:
        raise OSError(
            f"{repo} is gated: ask for access on its page, then log in (`hf auth login`)."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise OSError(
            f"the Hub has no repository {repo}, or it is private: check the name, or log in "
            "(`hf auth login`)."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise OSError(f"{repo} has no such revision: name a branch, a tag or a commit of it.") from error
    except errors.LocalEntryNotFoundError as error:
        raise OSError(
            f"the Hub cannot be reached and {MIXER} of {repo} was not downloaded before: check the network, "
            "or name a file."
        ) from error
    except errors.EntryNotFoundError as error:
        raise OSError(f"{repo} has no {MIXER}: it is no Mixer of samix.") from error
    except errors.HfHubHTTPError as error:
        raise OSError(refused(repo, error)) from error
    except errors.HFValidationError as error:
        raise ValueError(f"the Hub does not take the name {repo!r}: {error}") from error
    except Exception as error:
        if not is_connection(error):
            raise
        raise OSError(f"the Hub cannot be reached ({type(error).__name__}): check the network.") from error


def refused(repo: str, error: Exception) -> str:
    """The sentence for a request that the Hub answered with an error."""
    code = getattr(getattr(error, "response", None), "status_code", None)
    if code in (401, 403):
        return f"the Hub does not let you into {repo} ({code}): `hf auth login` with a token that may write."
    return f"the Hub refused {repo}: {str(error).strip().splitlines()[0]}"


def is_connection(error: Exception) -> bool:
    """Whether nobody answered, whichever library asked."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"ConnectionError", "TransportError", "ConnectTimeout", "Timeout"})
