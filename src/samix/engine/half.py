"""Half precision on CPUs that announce matrix tiles (AMX) and then forbid them, as some virtual ones do."""

import os
import subprocess
import sys

SETTING = "ONEDNN_MAX_CPU_ISA"
PROBE = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); a @ a"


def avoid_forbidden_tiles() -> bool:
    """Keeps oneDNN from tiles where a bfloat16 product kills its process; True where that was needed.

    oneDNN reads its setting once, so this must come before the first convolution. Nobody can catch an
    illegal instruction: a process of its own tries one.
    """
    if SETTING in os.environ:
        return False
    died = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode < 0
    if died:
        os.environ[SETTING] = "AVX512_CORE_FP16"
    return died
