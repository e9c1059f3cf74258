"""Words of errors: the suggestion and the list of what is available."""

from samix.core.words import suggest


def test_value_a_close_name_is_suggested():
    assert (
        suggest("cutmx", ["mixup", "cutmix"]) == "'cutmx'. Did you mean 'cutmix'? Available: mixup, cutmix."
    )


def test_value_nothing_close_means_no_suggestion():
    assert suggest("zebra", ["mixup", "cutmix"]) == "'zebra'. Available: mixup, cutmix."


def test_value_a_long_list_is_cut():
    words = suggest("x", [f"layer{n}" for n in range(30)], most=3)
    assert words.endswith("Available: layer0, layer1, layer2 and 27 more.")


def test_value_a_suggestion_beyond_the_cut_is_still_found():
    assert "Did you mean 'layer29'?" in suggest("layr29", [f"layer{n}" for n in range(30)], most=3)


def test_value_any_iterable_of_names_is_read_once():
    assert suggest("a", iter(["aa", "b"])).endswith("Available: aa, b.")
