import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from coterie.files import OutputError, check_writable, only_writer, replacing


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    for mode in (0o600, 0o640, 0o755):
        path.chmod(mode)
        with replacing(path) as temporary:
            temporary.write_text("new")
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert path.read_text() == "new"


def test_file_and_folder_are_flushed_in_this_order(tmp_path, monkeypatch):
    flushed, replaced, replace = [], [], os.replace

    def fsync(place):
        flushed.append((os.readlink(f"/proc/self/fd/{place}"), list(replaced)))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", lambda a, b: (replaced.append(str(b)), replace(a, b)))
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("x")
    assert flushed == [(str(temporary), []), (str(tmp_path), [str(tmp_path / "a")])]


@pytest.fixture
def hangup():
    """SIGHUP as a terminal leaves it: under nohup the tests, and the processes they start, would ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_temporary_file(number, tmp_path, hangup):
    code = (
        "import sys, time; from coterie.files import replacing\n"
        f"with replacing({str(tmp_path / 'a')!r}) as file:\n"
        "    file.write_text('half'); print('ready', flush=True); time.sleep(30)"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}  # which has handlers too
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=plain)
    assert process.stdout.readline() == b"ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(number)
    assert process.wait(20) == -number
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_a_signal_removes_the_temporary_files_of_blocks_inside_one_another_and_of_threads(tmp_path):
    """Only the file of the outermost block was removed."""
    code = (
        "import sys, threading, time; from coterie.files import replacing\n"
        "def write():\n"
        "    with replacing(sys.argv[1] + '/c'): time.sleep(30)\n"
        "with replacing(sys.argv[1] + '/a'), replacing(sys.argv[1] + '/b'):\n"
        "    threading.Thread(target=write, daemon=True).start()\n"
        "    time.sleep(0.5); print('ready', flush=True); time.sleep(30)"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, env=plain)
    assert process.stdout.readline() == b"ready\n"
    assert len(list(tmp_path.iterdir())) == 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_handlers_of_the_program_stay_and_come_back(tmp_path, hangup):
    def own(number, frame):
        pass

    before = signal.signal(signal.SIGTERM, own)
    try:
        with replacing(tmp_path / "a"):
            assert signal.getsignal(signal.SIGTERM) is own
            assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_files_can_be_written_in_a_thread(tmp_path):
    def write():
        with replacing(tmp_path / "a") as temporary:
            temporary.write_text("x")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert (tmp_path / "a").read_text() == "x"


def test_a_full_disk_is_said_and_leaves_the_old_file(tmp_path):
    """A limit on the size of files stands for a full disk."""
    path = tmp_path / "a"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        said = pytest.raises(OutputError, match=r"a could not be written \(File too large\): free some space")
        with said, replacing(path) as temporary:
            temporary.write_bytes(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be_written_is_named_at_once(tmp_path, monkeypatch):
    def read_only(*arguments, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    for action in (lambda: check_writable(tmp_path / "a"), lambda: replacing(tmp_path / "a").__enter__()):
        with pytest.raises(OutputError, match=r"a cannot be written \(Read-only file system\)"):
            action()


def test_a_folder_has_one_writer(tmp_path):
    code = f"from coterie.files import only_writer\nwith only_writer({str(tmp_path)!r}): print('in')"
    with only_writer(tmp_path):
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "OutputError: Another process is writing to" in second.stderr
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "in\n"
    assert list(tmp_path.iterdir()) == []
