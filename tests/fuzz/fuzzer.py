"""A mutating fuzzer for everything that reads files: ``python -m tests.fuzz.fuzzer --seconds 600``.

Valid files and files that once failed are altered at random (bytes, texts, cuts, repetitions, splices) and fed to the
readers in a process of their own, with limits on memory and time. An input that ends in anything but a result or a
sentence is kept in ``build/fuzz``; a process that dies leaves its last input there. Inputs that showed a mistake belong
into ``tests/fuzz/corpus``, which runs with the tests.
"""

import argparse
import gzip
import hashlib
import io
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
import zipfile
import zlib
from pathlib import Path

from tests.fuzz import seeds, targets

SECONDS_PER_INPUT = 10
SECONDS_PER_PROCESS = 60
EXTRA_BYTES = 3 * 2**30  # of address space, beyond what the process has at its start
LARGEST = 200_000  # bytes of an input: larger seeds are cut
TOKENS = [
    *(b"1e308", b"-1e308", b"1e-320", b"0x1F", b"1_000", b"1e999", b"nan", b"inf", b"-0", b"99999999999999999999"),
    *(b"0001-01-01", b"9999-12-31", b"2024-02-30", b"262143-01-01", b"12:61", b"true", b"null", b"''", b'"', b'""'),
    *(b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\n\n\n", b",", b";", b"\t", b"|", b" "),
    *(b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xe2\x80\xa8", b"a" * 300, b"," * 300, b"[" * 300, b"{}"),
    *(b"-1", b"0", b"2147483648", b"9223372036854775807", b"18446744073709551616", b"\x1b[31m", b"=1+1", b"sep=;"),
]


class Mutator:
    """Draws altered files. The same seed gives the same files."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.files = [(name, content[:LARGEST]) for name, content in {**seeds.valid(), **seeds.once_failed()}.items()]
        # valid files are drawn more often: most of what is derived from a bad file fails at the same place
        self.files += [(name, content) for name, content in seeds.valid().items()] * 5

    def draw(self) -> tuple[str, bytes]:
        name, content = self.random.choice(self.files)
        inside = self.random.random() < 0.7  # alter what is compressed, not the compressed bytes
        try:
            if inside and name.endswith(".gz"):
                return name, gzip.compress(self._damaged(gzip.decompress(content)), mtime=0)
            if inside and name.endswith(".xlsx"):
                return name, self._with_damaged_part(content)
        except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile):
            pass
        return name, self._damaged(content)

    def _with_damaged_part(self, archive: bytes) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(made, "w") as new:
            names = old.namelist()
            damaged = self.random.choice(names)
            for name in names:
                part = old.read(name)
                new.writestr(zipfile.ZipInfo(name), self._damaged(part) if name == damaged else part)
        return made.getvalue()

    def _damaged(self, content: bytes) -> bytes:
        for _ in range(1 + int(self.random.expovariate(0.5))):
            content = self._altered(content)[:LARGEST]
        return content

    def _altered(self, content: bytes) -> bytes:
        draw = self.random
        at, to = sorted(draw.randrange(len(content) + 1) for _ in range(2))
        near = min(len(content), at + draw.choice([1, 2, 4, 8, 16, 64]))
        kind = draw.randrange(8)
        if kind == 0 and content:  # one bit
            place = draw.randrange(len(content))
            return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]
        if kind == 1:
            return content[:at] + draw.randbytes(near - at) + content[near:]
        if kind == 2:
            return content[:at] + draw.choice(TOKENS) + content[near:]
        if kind == 3:
            return content[:at] + draw.choice(TOKENS) + content[at:]
        if kind == 4:  # a piece twice, or many times
            return content[:to] + content[at:to] * draw.choice([1, 1, 2, 20]) + content[to:]
        if kind == 5:
            return content[:at] + content[near:]
        if kind == 6:
            return content[:at] if draw.random() < 0.5 else content[at:]
        other = draw.choice(self.files)[1]
        start = draw.randrange(len(other) + 1)
        return content[:at] + other[start : start + near - at + 8] + content[near:]


def rounds(folder: Path, seed: int, seconds: float, most: int | None = None, *, keep: bool = True) -> list[Path]:
    """Feed altered files for some seconds, and return the files of those that failed."""
    mutator, end, found, count = Mutator(seed), time.monotonic() + seconds, [], 0
    folder.mkdir(parents=True, exist_ok=True)
    kinds: set[str] = set()
    while time.monotonic() < end and (most is None or count < most) and keep:
        name, content = mutator.draw()
        path = folder / f"current-{seed}-{name}"
        path.write_bytes(content)
        count += 1
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PER_INPUT)
        try:
            targets.run(path)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
            if kind not in kinds:  # one input of a kind is enough
                kinds.add(kind)
                found.append(folder / f"{hashlib.sha256(content).hexdigest()[:12]}-{name}")
                found[-1].write_bytes(content)
                print(f"{found[-1]}: {kind}: {str(error)[:200]!r}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        path.unlink()
    print(f"seed {seed}: {count} inputs, {len(found)} kinds of errors", flush=True)
    return found


def _limit(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS_PER_INPUT} seconds")


def _child(folder: Path, seed: int, seconds: float) -> int:
    seeds.once_failed()
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + EXTRA_BYTES, size + EXTRA_BYTES))
    signal.signal(signal.SIGVTALRM, _limit)
    return 1 if rounds(folder, seed, seconds) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None, help="of the first process; by default the time")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    if given.child:
        return _child(given.folder, seed, given.seconds)
    end, failed = time.monotonic() + given.seconds, 0
    while (left := end - time.monotonic()) > 1:
        seconds = min(left, SECONDS_PER_PROCESS)
        command = [sys.executable, "-m", "tests.fuzz.fuzzer", "--child", "--seed", str(seed), "--seconds", str(seconds)]
        code = subprocess.run([*command, "--folder", str(given.folder)]).returncode
        failed += code != 0
        if code not in (0, 1):
            print(f"seed {seed}: the process ended with {code}; its last input is {given.folder}/current-{seed}-*")
        seed += 1
    print("clean" if not failed else f"{failed} processes found errors: see {given.folder}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
