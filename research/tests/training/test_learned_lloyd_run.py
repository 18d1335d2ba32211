import json

import torch

from coterie_research.training.learned_lloyd import LearnedLloydRun


def test_training_lowers_the_loss_and_resumes(tmp_path):
    config = tmp_path / "run.json"
    settings = {"steps": 12, "learning_rate": 0.02, "warmup_steps": 1, "checkpoint_every": 6, "log_every": 6}
    config.write_text(json.dumps({"model": {"n_layers": 3}, "training": settings, "batch": 4}))
    run = LearnedLloydRun.from_json(config)
    whole = run.train(tmp_path / "whole")
    run.train(tmp_path / "parts", on_progress=lambda progress: progress.step == 6)
    resumed = run.train(tmp_path / "parts", resume=True)
    for a, b in zip(whole.parameters(), resumed.parameters()):
        assert torch.equal(a, b)
