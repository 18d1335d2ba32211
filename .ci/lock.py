"""Print constraints.txt with the SHA-256 of the wheels that the package index has of each pinned version.

    python .ci/lock.py > constraints-hashed.txt

``pip install --require-hashes --no-deps -r constraints-hashed.txt`` then accepts these files and no others. Wheels for
the supported versions of CPython on 64-bit Linux, macOS and Windows are listed; nothing is built from source. torch is
left out: its CPU builds come from an index of their own, with other hashes, and ``make locked`` installs it before.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version
from pip._internal.models.index import PyPI

PINS = Path(__file__).parent.parent / "constraints.txt"
LEFT_OUT = ("torch",)
INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")  # as pip itself decides
FILE = re.compile(r'#sha256=(?P<hash>[0-9a-f]{64})"[^>]*>\s*(?P<name>[^<\s]+)')
PYTHON = re.compile(r"py3|cp31[0-3]|cp3\d-abi3")
PLATFORM = re.compile(r"any|manylinux\w*_(x86_64|aarch64)|macosx_\w+|win_amd64")


def is_wheel_of(filename: str, version: Version) -> bool:
    """Whether a file of the index is a wheel of that version for a supported system."""
    try:
        _, found, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return False
    return found == version and any(
        PYTHON.match(f"{tag.interpreter}-{tag.abi}") and PLATFORM.fullmatch(tag.platform) for tag in tags
    )


def locked(pin: str) -> str:
    """The line of one pin with its hashes."""
    name, _, version = pin.partition("==")
    page = Request(f"{INDEX}/{canonicalize_name(name)}/", headers={"Accept": "text/html"})
    with urlopen(page, timeout=60) as answer:
        files = FILE.finditer(answer.read().decode())
    hashes = sorted(file["hash"] for file in files if is_wheel_of(file["name"], Version(version)))
    if not hashes:
        raise SystemExit(f"The index has no wheel of {pin}: correct {PINS.name}.")
    return " \\\n    ".join([pin, *(f"--hash=sha256:{value}" for value in hashes)])


if __name__ == "__main__":
    if not INDEX:
        raise SystemExit("Set PIP_INDEX_URL to the address of the package index, as for pip.")
    pins = [pin for pin in PINS.read_text(encoding="utf-8").split() if pin.partition("==")[0] not in LEFT_OUT]
    with ThreadPoolExecutor(8) as pool:
        print("# Made by `make lock` from constraints.txt: do not edit.")
        print("\n".join(pool.map(locked, pins)))
