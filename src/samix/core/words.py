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


def suggest_recipe(name: str, families: Iterable[str]) -> str:
    """The same for 'family/row' with an unknown family: "'dmeo/samix'. Did you mean 'demo/samix'? ..."."""
    family, slash, row = name.partition("/")
    names = list(families)
    close = difflib.get_close_matches(family, names, n=1)
    hint = f" Did you mean '{close[0]}{slash}{row}'?" if close else ""
    return f"'{name}'.{hint} Available: {', '.join(names)}."


def printable(text: str) -> str:
    """The text with all that a terminal would obey or no encoding can write spelled out; line ends stay.

    >>> printable("run\\x1b[2J")
    'run\\\\x1b[2J'
    """
    return "".join(
        sign if sign.isprintable() or sign == "\n" else sign.encode("unicode_escape").decode()
        for sign in text
    )
