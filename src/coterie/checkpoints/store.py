"""Read and write shipped weights. A card says what a network is, how it was made, what it scores, and its hash."""

import hashlib
import json
from importlib import import_module
from pathlib import Path
from typing import Any

SHELF = Path(__file__).parent
# kind of network -> module and function that builds it from the card's ``config``
BUILDERS = {
    "flow": ("coterie.flow.model", "build"),
    "learned-lloyd": ("coterie.kmeans.learned", "build"),
    "incontext": ("coterie.incontext.pair_transformer", "build"),
    "zeroshot": ("coterie.zeroshot.model", "build"),
}
REQUIRED = ("name", "kind", "config", "sha256", "data", "training", "scores", "licence")


def available(shelf: Path = SHELF) -> list[dict[str, Any]]:
    """The cards of all shipped networks, by name."""
    return [json.loads(path.read_text()) for path in sorted(shelf.glob("*.json"))]


def card(name: str, shelf: Path = SHELF) -> dict[str, Any]:
    """The card of one network."""
    path = shelf / f"{name}.json"
    if not path.exists():
        names = ", ".join(sorted(p.stem for p in shelf.glob("*.json"))) or "none"
        raise ValueError(f"no shipped network is called {name!r}; there are: {names}")
    return json.loads(path.read_text())


def load(name: str, shelf: Path = SHELF, *, kind: str | None = None) -> Any:
    """The network of that name with its weights, in evaluation mode; a network of another ``kind`` is refused."""
    from safetensors.torch import load as parse

    about = card(name, shelf)
    if kind not in (None, about["kind"]):
        fitting = ", ".join(each["name"] for each in available(shelf) if each["kind"] == kind) or "none"
        raise ValueError(
            f"the network {name!r} is of the kind {about['kind']!r}, not {kind!r}; of that kind are: {fitting}"
        )
    content = (shelf / f"{name}.safetensors").read_bytes()
    if hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise ValueError(f"the weights of {name!r} differ from the hash on their card; install the package again")
    module, function = BUILDERS[about["kind"]]
    network = getattr(import_module(module), function)(about["config"])
    network.load_state_dict(parse(content))
    return network.eval()


def save(network: Any, about: dict[str, Any], shelf: Path = SHELF) -> Path:
    """Write weights and card; ``about`` needs every required entry but the hash. Returns the card's path."""
    from safetensors.torch import save as serialise

    content = serialise({name: weight.contiguous() for name, weight in network.state_dict().items()})
    about = {**about, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    missing = [entry for entry in REQUIRED if entry not in about]
    if missing:
        raise ValueError(f"a card needs {', '.join(REQUIRED)}; missing: {', '.join(missing)}")
    (shelf / f"{about['name']}.safetensors").write_bytes(content)
    path = shelf / f"{about['name']}.json"
    path.write_text(json.dumps(about, indent=1) + "\n")
    return path
