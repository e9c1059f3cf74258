"""Mixed pictures and what survives of their objects: written, read back, and damaged."""

import numpy as np
import pytest

from samix.runs.samples import Samples, read_retention, read_samples, save_retention, save_samples


def arrays_of(pairs: int, lams: int, size: int, *, learned: bool = False) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {
        "first": rng.integers(0, 256, (pairs, 3, size, size), dtype=np.uint8),
        "partner": rng.integers(0, 256, (pairs, 3, size, size), dtype=np.uint8),
        "lams": np.linspace(0, 1, lams, dtype=np.float32),
        "masks": rng.random((lams, pairs, 1, size, size), dtype=np.float32),
        "mixed": rng.integers(0, 256, (lams, pairs, 3, size, size), dtype=np.uint8),
    }
    if learned:
        arrays |= {name: rng.random((pairs, 2, 2), dtype=np.float32) for name in ("content", "attention")}
    return arrays


# ------------------------------------------------------------ samples.npz


def test_shape_samples(write_run):
    learned, made = read_samples(write_run()), read_samples(write_run("demo/mixup", "mixup"))
    assert learned.mixed.shape == (3, 3, 3, 8, 8)
    assert learned.attention.shape == (3, 4, 4)
    assert made.content is None


def test_shape_plain_samples_are_mixed_at_no_lam(write_run):
    plain = read_samples(write_run("demo/plain", "plain"))
    assert plain.first.shape == (3, 3, 8, 8)
    assert (len(plain.lams), plain.masks.shape, plain.mixed.shape) == (0, (0, 3, 1, 8, 8), (0, 3, 3, 8, 8))


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(("pairs", "lams", "size"), [(3, 11, 8), (1, 1, 5)])
def test_value_samples_come_back(pairs, lams, size, learned, tmp_path):
    arrays = arrays_of(pairs, lams, size, learned=learned)
    save_samples(tmp_path, arrays)
    found = read_samples(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["samples.npz"]
    for name in Samples._fields:
        value = getattr(found, name)
        if name in arrays:
            assert value.dtype == arrays[name].dtype and np.array_equal(value, arrays[name])
        else:
            assert value is None


def test_value_samples_of_a_run_that_mixes_nothing_come_back(tmp_path):
    arrays = arrays_of(2, 3, 4)
    save_samples(tmp_path, {name: arrays[name] for name in ("first", "partner", "lams")})
    found = read_samples(tmp_path)
    assert np.array_equal(found.first, arrays["first"]) and np.array_equal(found.partner, arrays["partner"])
    assert found.lams.shape == (0,) and found.content is None and found.attention is None


def test_value_new_samples_replace_old_ones(tmp_path):
    save_samples(tmp_path, arrays_of(3, 11, 8, learned=True))
    save_samples(tmp_path, arrays_of(1, 1, 5))
    found = read_samples(tmp_path)
    assert found.first.shape == (1, 3, 5, 5) and found.content is None


def test_value_fields_of_later_versions_are_left_out(tmp_path):
    save_samples(tmp_path, arrays_of(1, 1, 5) | {"later": np.zeros(3)})
    assert read_samples(tmp_path).first.shape == (1, 3, 5, 5)


def test_error_of_broken_samples(write_run):
    path = write_run()
    (path / "samples.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"samples\.npz"):
        read_samples(path)
    np.savez(path / "samples.npz", first=np.zeros(1))
    with pytest.raises(ValueError, match=r"samples\.npz.*partner"):
        read_samples(path)
    (path / "samples.npz").unlink()
    assert read_samples(path) is None


@pytest.mark.parametrize("left", [0.0, 0.01, 0.5, 0.99], ids="{:.0%} left".format)
def test_error_of_samples_that_were_cut_off(left, tmp_path):
    save_samples(tmp_path, arrays_of(2, 3, 4))
    path = tmp_path / "samples.npz"
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    with pytest.raises(ValueError, match=r"samples\.npz does not hold mixed pictures"):
        read_samples(tmp_path)


def test_error_of_samples_with_a_wrong_byte_inside(tmp_path):
    save_samples(tmp_path, arrays_of(2, 3, 4))
    path = tmp_path / "samples.npz"
    content = bytearray(path.read_bytes())
    start = content.index(b"first.npy") + len("first.npy")
    content[start : start + 60] = b"\xff" * 60
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"samples\.npz does not hold mixed pictures"):
        read_samples(tmp_path)


@pytest.mark.parametrize("missing", ["masks", "mixed", "lams"])
def test_error_of_samples_that_lack_a_part(missing, tmp_path):
    arrays = arrays_of(2, 3, 4)
    del arrays[missing]
    save_samples(tmp_path, arrays)
    with pytest.raises(ValueError, match=rf"samples\.npz does not hold mixed pictures: .*{missing}"):
        read_samples(tmp_path)


def test_error_samples_run_no_code(tmp_path):
    pickled = np.array([{"an": "object"}], dtype=object)
    np.savez(tmp_path / "samples.npz", **arrays_of(1, 1, 4) | {"first": pickled})
    with pytest.raises(ValueError, match=r"samples\.npz does not hold mixed pictures"):
        read_samples(tmp_path)


# ------------------------------------------------------------ retention.csv

ROWS = [{"lam": 0.0, "first": 0.0, "both": 0.123449}, {"lam": 1.0, "first": 1.0, "both": 2 / 3}]


def test_value_retention_comes_back(tmp_path):
    save_retention(tmp_path, ROWS)
    assert (tmp_path / "retention.csv").read_text() == (
        "lam,first,both\n0.0000,0.0000,0.1234\n1.0000,1.0000,0.6667\n"
    )
    found = read_retention(tmp_path)
    assert [list(row) for row in found] == [["lam", "first", "both"]] * 2
    for row, expected in zip(found, ROWS, strict=True):
        assert row == pytest.approx(expected, abs=5e-5)


def test_value_no_retention_where_the_true_masks_are_not_known(tmp_path):
    assert read_retention(tmp_path) is None


@pytest.mark.parametrize("line", ["0.5,half", "0.5"])
def test_error_of_damaged_retention(line, tmp_path):
    (tmp_path / "retention.csv").write_text(f"lam,first\n0.0,0.0\n{line}\n1.0,1.0\n")
    with pytest.raises(ValueError, match=r"retention\.csv, line 3"):
        read_retention(tmp_path)
