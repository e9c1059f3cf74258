"""Words of strangers in a card: shown, and nothing else."""

import pytest

from samix.runs.card import code, escape


def test_value_escape():
    assert escape("a_b *c* [d](e) <f> & |g|\n\n# h") == "a\\_b \\*c\\* \\[d\\](e) &lt;f&gt; &amp; \\|g\\| # h"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a b", "`a b`"), ("a\n`b`", "`` a `b` ``"), ("``` x", "```` ``` x ````"), ("", "` `")],
)
def test_value_code(text, expected):
    assert code(text).replace("  ", " ") == expected
