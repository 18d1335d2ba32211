"""States of training runs on disk: written atomically, read without running code from them."""

import io
import os
import pickle
from pathlib import Path
from typing import Any

import torch

from coterie.files import replacing
from coterie.wording import shown


def save_state(state: dict[str, Any], path: Path) -> None:
    """Write tensors and plain values to a file."""
    content = io.BytesIO()  # torch reports a full disk as an error of its own if it writes to a file
    torch.save(state, content)
    with replacing(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def load_state(path: str | os.PathLike, map_location: Any = "cpu") -> dict[str, Any]:
    """Read such a file, or raise a ValueError if it is damaged."""
    content = io.BytesIO(Path(path).read_bytes())
    try:
        state = torch.load(content, weights_only=True, map_location=map_location)
    except Exception as error:  # the file has been read, so whatever torch says is about its bytes
        raise _damaged(path, error) from error
    if not isinstance(state, dict):
        raise _damaged(path, ValueError("it is not a dictionary"))
    return state


def _damaged(path: str | os.PathLike, error: Exception) -> ValueError:
    reason = shown(str(error).splitlines()[0][:120]) if str(error) else type(error).__name__
    if isinstance(error, pickle.UnpicklingError):  # torch's own words advise to load it without these checks
        reason = "it contains more than tensors and plain values"
    return ValueError(f"{path} is damaged or is not the state of a run ({reason}): remove it and start again.")
