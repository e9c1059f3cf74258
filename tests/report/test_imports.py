"""The report reads run folders: it needs no dataset and no training engine."""

import subprocess
import sys


def test_invariant_the_report_imports_neither_the_engine_nor_fabric():
    unwanted = {"lightning_fabric", "timm", "sklearn", "samix.engine", "samix.data"}
    code = f"import sys, samix.report; print(*{unwanted} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
