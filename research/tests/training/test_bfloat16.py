import subprocess
import sys

import pytest
import torch

from coterie_research.training import bfloat16


@pytest.fixture
def processor(tmp_path, monkeypatch):
    """A function that makes the processor report the given flags."""

    def report(flags):
        file = tmp_path / "cpuinfo"
        file.write_text(f"flags\t\t: fpu {flags}\n")
        monkeypatch.setattr(bfloat16, "PROCESSORS", file)
        monkeypatch.setattr(bfloat16, "survives_trial", bfloat16.survives_trial.__wrapped__)

    return report


def test_without_amx_nothing_is_tried(processor, monkeypatch):
    processor("avx512f")
    monkeypatch.setattr(bfloat16, "TRIAL", "raise SystemExit(1)")
    with bfloat16.products():
        assert torch.backends.mkldnn.enabled


@pytest.mark.parametrize(("trial", "kept"), [("pass", True), ("import os, signal; os.kill(os.getpid(), 4)", False)])
def test_one_dnn_is_used_only_if_a_trial_survives(trial, kept, processor, monkeypatch):
    processor("amx_bf16 amx_tile")
    monkeypatch.setattr(bfloat16, "TRIAL", trial)
    with bfloat16.products():
        assert torch.backends.mkldnn.enabled is kept
    assert torch.backends.mkldnn.enabled


def test_products_in_bfloat16_end_no_process():
    """In a process of its own: where the instructions are missing, nothing could be reported otherwise."""
    code = (
        "import torch; from coterie_research.training import bfloat16\n"
        "a = torch.ones(64, 64, dtype=torch.bfloat16)\n"
        "with bfloat16.products(): print(float((a @ a)[0, 0]))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "64.0"
