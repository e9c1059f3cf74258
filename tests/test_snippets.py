"""Snippets of the docs run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import save_file

from samix.nn.zoo import build_encoder

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.slow
def test_value_the_lines_that_load_an_encoder_into_timm(tmp_path):
    text = (DOCS / "self_supervised.md").read_text()
    (snippet,) = re.findall(r"```python\n(import samix  # .*?)```", text, re.S)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    save_file(build_encoder("resnet18").network.state_dict(), tmp_path / "runs/mine/encoder.safetensors")
    done = subprocess.run([sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
