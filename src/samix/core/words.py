"""Words for errors: what was wrong, what is allowed, what to do."""

import difflib
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str], most: int = 24) -> str:
    """ "'cutmx'. Did you mean 'cutmix'? Available: cutmix, mixup." for the end of a sentence."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    if most == 0:
        return f"'{name}'.{hint}"
    listed = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
    return f"'{name}'.{hint} Available: {listed}."
