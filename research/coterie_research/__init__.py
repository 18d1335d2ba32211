"""The laboratory of coterie: one folder per paper, benchmarks, training, and the networks of experiments."""

from pathlib import Path

from coterie import checkpoints

checkpoints.add_shelf(
    Path(__file__).parent / "weights",
    builders={"zeroshot": "coterie_research.training.zeroshot.modules"},
    array_builders={"zeroshot/one": "coterie_research.zeroshot_one"},
)
