"""Threads of the program sleep while they wait; programs of others keep their own setting."""

import os
import subprocess
import sys

import pytest

from samix._threads import runs_program

SHOW = "import os, samix; print(os.environ.get('OMP_WAIT_POLICY'))"


@pytest.mark.parametrize(
    ("first", "words", "ours"),
    [
        ("/somewhere/bin/samix", ["python", "/somewhere/bin/samix", "demo"], True),
        ("C:/Scripts/samix.exe", ["samix.exe"], True),
        ("-m", ["python", "-W", "error", "-m", "samix", "train"], True),
        ("/lib/samix/__main__.py", ["python", "-m", "samix"], True),
        ("-m", ["python", "-m", "pytest", "samix"], False),
        ("train.py", ["python", "train.py", "-m", "samix"], False),
        ("-c", ["python", "-c", "import samix"], False),
        ("", ["python"], False),
    ],
)
def test_value_who_runs(first, words, ours):
    assert runs_program(first, words) == ours


def test_value_a_program_of_others_keeps_its_setting():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    told = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True)
    assert told.stdout == "None\n"


@pytest.mark.parametrize(("given", "kept"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_value_the_program_waits_passively_unless_told_otherwise(tmp_path, given, kept):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {} if given is None else {"OMP_WAIT_POLICY": given}
    program = tmp_path / "samix"
    program.write_text(SHOW)
    told = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True)
    assert told.stdout == f"{kept}\n"
