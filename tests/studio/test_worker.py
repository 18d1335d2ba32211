import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the address space is limited")
def test_memory_is_limited_but_not_the_code_that_libraries_map(tmp_path):
    """Libraries for GPUs map gigabytes: with a limit on the address space, torch could not be imported any more."""
    code = (
        "import mmap, sys\n"
        "from coterie.studio.worker import _bind\n"
        "file = open(sys.argv[1], 'w+b'); file.truncate(2**32)\n"
        "_bind(2**28, 60, 2**33)\n"
        "mapped = mmap.mmap(file.fileno(), 2**32, access=mmap.ACCESS_READ)\n"
        "small = bytearray(2**26)\n"
        "try:\n"
        "    large = bytearray(2**29)\n"
        "except MemoryError:\n"
        "    print('refused')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "library")], capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("refused\n", "")
