from pathlib import Path

import pytest
import torch

from coterie.checkpoints.state import load_state, save_state
from coterie.files import OutputError


def test_a_state_comes_back(tmp_path):
    save_state({"a": torch.arange(3), "step": 4}, tmp_path / "state.pt")
    state = load_state(tmp_path / "state.pt")
    assert state["step"] == 4
    assert torch.equal(state["a"], torch.arange(3))


def test_damaged_states_are_named(tmp_path):
    """A file without its last bytes once ended in an OSError of the system."""
    path = tmp_path / "state.pt"
    save_state({"a": torch.arange(300)}, path)
    content = path.read_bytes()
    torch.save([1, 2], tmp_path / "list.pt")
    for damaged in (
        b"",
        b"PK",
        content[:200],
        content[:-300],
        content[:-100],
        b"x" * 500,
        (tmp_path / "list.pt").read_bytes(),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"state\.pt is damaged .*: remove it and start again"):
            load_state(path)


def test_no_object_is_made_from_a_state_and_nobody_is_advised_to(tmp_path):
    """torch's own words, with colours for a terminal, say how to load such a file all the same."""
    torch.save({"a": Path("x")}, tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"\(it contains more than tensors and plain values\)"):
        load_state(tmp_path / "state.pt")


def test_a_full_disk_is_said(tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OutputError, match="File too large"):
            save_state({"a": torch.zeros(10_000)}, tmp_path / "state.pt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
