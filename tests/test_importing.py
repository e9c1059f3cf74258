"""`import samix` stays light: the drop-in needs torch and little else."""

import json
import subprocess
import sys

HEAVY = ("timm", "torchvision", "sklearn", "matplotlib", "lightning_fabric", "jsonargparse", "rich", "wandb")
SCRIPT = """
import json, sys, time
import torch, torch.utils.data, yaml, jaxtyping
began = time.process_time()
import samix
print(json.dumps([time.process_time() - began, sorted(sys.modules)]))
"""


def test_invariant_importing_samix_imports_no_training_engine_and_takes_no_time():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    seconds, modules = json.loads(done.stdout)
    assert not {name.split(".")[0] for name in modules} & set(HEAVY)
    assert seconds < 1  # 0.2 as a rule; slack for a busy machine
