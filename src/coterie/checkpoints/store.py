"""Find, load and save trained networks.

A network is two files: ``NAME.safetensors`` holds the weights, and ``NAME.json`` is its card, which says what the
network is, how it was trained, what it scores, and the SHA-256 hash of the weights. Loading a network runs no code from
its files.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coterie.checkpoints.json_shapes import check
from coterie.files import check_writable, replacing

SHELF = Path(__file__).parent  # of the networks that come with the package
_shelves = [SHELF]
# kind of network -> module whose function ``build`` makes one from the card's ``config``
BUILDERS = {
    "flow": "coterie.mixtures.flow",
    "learned-lloyd": "coterie.kmeans.learned",
    "incontext": "coterie.incontext.pair_transformer",
}
# kinds that compute on arrays -> module whose ``build`` makes one from the ``config``, the arrays and a device
ARRAY_BUILDERS = {"zeroshot": "coterie.zeroshot.network.loading"}
RESEARCH = "coterie_research"  # has the networks of experiments and of earlier versions
REQUIRED = ("name", "kind", "about", "config", "sha256", "data", "training", "scores", "licence")
STORED: dict[str, Any] = {
    entry: dict if entry in ("config", "data", "training", "scores") else str for entry in REQUIRED
}
STORED |= {"kind": {*BUILDERS, *ARRAY_BUILDERS}, "bytes": int}
MOST = 4096  # of any size in a config: a network is built before its weights are compared with it
WEIGHTS, CARD = ".safetensors", ".json"


def add_shelf(
    shelf: Path, builders: dict[str, str] | None = None, array_builders: dict[str, str] | None = None
) -> None:
    """Find the networks of another folder by name, too.

    The modules build kinds that this package does not, for torch and from arrays, as :data:`BUILDERS` has them. A
    variety such as "zeroshot/one" is used wherever a "zeroshot" is.
    """
    if shelf not in _shelves:
        _shelves.append(shelf)
    BUILDERS.update(builders or {})
    ARRAY_BUILDERS.update(array_builders or {})
    STORED["kind"] |= {*BUILDERS, *ARRAY_BUILDERS}


def user_shelf() -> Path:
    """The folder of your own networks: ``networks`` inside ``COTERIE_HOME``, or inside the platform's data folder."""
    home = os.environ.get("COTERIE_HOME")
    if home:
        return Path(home).expanduser() / "networks"
    data, default = {
        "Windows": ("LOCALAPPDATA", "AppData/Local"),
        "Darwin": ("", "Library/Application Support"),
    }.get(platform.system(), ("XDG_DATA_HOME", ".local/share"))
    return Path(os.environ.get(data) or Path.home() / default) / "coterie" / "networks"


def available(shelf: Path | None = None) -> list[dict[str, Any]]:
    """The cards of the networks on ``shelf``, by default on all: the package's networks first, your own last."""
    shelves = _known_shelves() if shelf is None else (Path(shelf),)
    return [_read(path) for each in shelves for path in sorted(each.glob(f"*{CARD}"), key=lambda path: path.stem)]


def card(network: str | os.PathLike) -> dict[str, Any]:
    """The card of a network, given by its name or by the path of one of its two files."""
    return _read(_find(network))


def load(network: str | os.PathLike, *, kind: str | None = None, dtype: Any = None, device: Any = None) -> Any:
    """Load a network with its weights, in evaluation mode and without gradients.

    Networks are cached: the same arguments give the same object as long as the files do not change. Use
    ``copy.deepcopy`` if you want to change it.

    Parameters
    ----------
    network : str or path
        The name of a network on one of the two shelves, or the path of a network's ``.safetensors`` file, whose card
        (``.json``) must be beside it.
    kind : str or None, default=None
        The kind that the network must be of, for example "flow"; None accepts every kind.
    dtype : torch.dtype or None, default=None
        The data type of the weights; None keeps the one they were saved in.
    device : torch.device, str or None, default=None
        Where the weights are placed; None is the CPU.

    Returns
    -------
    network : torch.nn.Module
        Of the kind "zeroshot" only where the package coterie-research is installed, which trains such networks.

    Raises
    ------
    ValueError
        If there is no such network, if it is of another kind, or if the weights differ from the hash on the card.
    """
    path = _find_kind(network, kind)
    return _loaded(path.with_suffix(WEIGHTS), path.read_text(encoding="utf-8"), dtype, str(device or "cpu"))


def load_arrays(network: str | os.PathLike, *, kind: str, device: Any = None) -> Any:
    """Load a network of a kind that computes on arrays; on the CPU without importing torch.

    Names, paths, the cache and errors are those of :func:`load`. The result is no torch module.
    """
    path = _find_kind(network, kind)
    return _loaded_arrays(path.with_suffix(WEIGHTS), path.read_text(encoding="utf-8"), str(device or "cpu"))


def save(network: Any, about: dict[str, Any], shelf: Path) -> Path:
    """Write the weights and the card of a network to ``shelf``, both or neither.

    ``about`` needs every entry of a card except the hash. Returns the path of the card.
    """
    from safetensors.torch import save as serialise

    content = serialise({name: weight.detach().contiguous() for name, weight in network.state_dict().items()})
    about = {**about, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    missing = [entry for entry in REQUIRED if entry not in about]
    if missing:
        raise ValueError(f"A card needs {', '.join(REQUIRED)}; missing: {', '.join(missing)}.")
    check_name(about["name"])
    shelf.mkdir(parents=True, exist_ok=True)
    path = shelf / f"{about['name']}{CARD}"
    weights = check_writable(path.with_suffix(WEIGHTS))
    # The weights take their name first: a network without a card is not on the shelf.
    with replacing(check_writable(path)) as new_card:
        new_card.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        with replacing(weights) as new_weights:
            new_weights.write_bytes(content)
    return path


def check_name(name: str) -> None:
    """Raise ValueError unless ``name`` can be the name of a network and of its files."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name.endswith((CARD, WEIGHTS)):
        raise ValueError(
            f"{name!r} cannot be the name of a network: use letters, digits, '-', '_' and '.', and no file extension."
        )


def _find(network: str | os.PathLike, kind: str | None = None) -> Path:
    """The path of the network's card."""
    path = Path(network).expanduser()
    if path.suffix in (CARD, WEIGHTS):
        missing = [str(file) for file in (path.with_suffix(WEIGHTS), path.with_suffix(CARD)) if not file.is_file()]
        if missing:
            raise ValueError(f"There is no file {missing[0]}: a network is a {WEIGHTS} file and its card ({CARD}).")
        return path.with_suffix(CARD)
    for look in (lambda: None, _research):
        look()
        for shelf in _known_shelves():
            if path.name == str(path) and (shelf / f"{path}{CARD}").is_file():
                return shelf / f"{path}{CARD}"
    raise ValueError(f"There is no network {str(network)!r}. {_there_are(kind)}")


def _known_shelves() -> tuple[Path, ...]:
    return (*_shelves, user_shelf())


def _research() -> bool:
    """Whether there is the research package, which adds its shelf and its kinds of networks when it is imported."""
    if find_spec(RESEARCH) is None:
        return False
    import_module(RESEARCH)
    return True


def _find_kind(network: str | os.PathLike, kind: str | None) -> Path:
    """The path of the card, which must be of a kind."""
    path = _find(network, kind)
    about = _read(path)
    if kind not in (None, _family(about)):
        raise ValueError(f"The network {str(network)!r} is of kind {about['kind']!r}, not {kind!r}. {_there_are(kind)}")
    return path


def _family(about: dict[str, Any]) -> str:
    """The kind of a network without its variety."""
    return about["kind"].partition("/")[0]


def _there_are(kind: str | None) -> str:
    """What a user can ask for instead."""
    found = []
    for title, shelf in (("with the package", SHELF), (f"in {user_shelf()}", user_shelf())):
        names = [each["name"] for each in available(shelf) if kind in (None, _family(each))]
        found.append(f"{title}: {', '.join(names) or 'none'}")
    which = "Networks" if kind is None else f"Networks of kind {kind!r}"
    return (
        f"{which} {'; '.join(found)}. Those of earlier versions are in the package coterie-research. You can also give "
        f"the path of a {WEIGHTS} file."
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        check(about, STORED, "card")
        given = [each if isinstance(each, list) else [each] for each in about["config"].values()]
        sizes = [size for each in given for size in each if type(size) is int]
        if not re.fullmatch("[0-9a-f]{64}", about["sha256"]) or any(not 0 <= size <= MOST for size in sizes):
            raise ValueError(f"sha256 must be 64 hexadecimal digits, and sizes in config at most {MOST:,}")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not the card of a network ({error}): delete it, or ship the network again."
        ) from error
    return {**about, "name": path.stem}


@lru_cache(maxsize=16)
def _loaded(weights: Path, card_text: str, dtype: Any, device: str) -> Any:
    """The text of the card is part of the key: a network that is shipped again has another hash."""
    import torch
    from safetensors.torch import load as parse

    about, content = _verified(weights, card_text)
    if about["kind"] not in BUILDERS and not _research():
        raise ValueError(
            f"Networks of kind {about['kind']!r} are torch modules only in the package coterie-research, which trains "
            "them: pip install ./research in a copy of the repository. Estimators use them without it."
        )
    with _fitting(weights):
        tensors = parse(content)
        if not all(bool(weight.isfinite().all()) for weight in tensors.values()):
            raise ValueError("some weights are not finite")
        build = import_module(BUILDERS[about["kind"]]).build
        if weights.parent != SHELF:  # somebody else's card may ask for any size; "meta" tensors take no memory
            with torch.device("meta"):
                shapes = {name: weight.shape for name, weight in build(about["config"]).state_dict().items()}
            if shapes != {name: weight.shape for name, weight in tensors.items()}:
                raise ValueError("the weights have other names or shapes")
        network = build(about["config"])
        network.load_state_dict(tensors)
    return network.eval().requires_grad_(False).to(device=device, dtype=dtype)


@lru_cache(maxsize=16)
def _loaded_arrays(weights: Path, card_text: str, device: str) -> Any:
    import numpy as np
    from safetensors.numpy import load as parse

    about, content = _verified(weights, card_text)
    with _fitting(weights):
        arrays = parse(content)
        if not all(bool(np.isfinite(weight).all()) for weight in arrays.values()):
            raise ValueError("some weights are not finite")
        return import_module(ARRAY_BUILDERS[about["kind"]]).build(about["config"], arrays, device)


def _verified(weights: Path, card_text: str) -> tuple[dict[str, Any], bytes]:
    """The card, and the content of the weights' file, whose hash must be the one on the card."""
    about = json.loads(card_text)
    content = weights.read_bytes()
    if hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise ValueError(f"The weights in {weights} differ from the hash on their card: install or ship them again.")
    return about, content


@contextmanager
def _fitting(weights: Path) -> Iterator[None]:
    """Name the network whose weights and card do not fit."""
    from safetensors import SafetensorError

    try:
        yield
    except (ValueError, TypeError, LookupError, RuntimeError, AttributeError, SafetensorError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"The network {weights} does not fit its card ({reason}): ship it again.") from error
