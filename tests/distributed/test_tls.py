"""A cluster that speaks TLS, set up by nothing but Dask's own settings."""

import copy
import json
import shutil
import subprocess

import dask
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from coterie.cli import app
from tests.distributed.processes import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def tls(tmp_path, monkeypatch):
    """A certificate for this test alone, named in the environment as Dask reads it."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by openssl: this test did NOT run")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, *name]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION", "True")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TLS__CA_FILE", str(certificate))
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT", str(certificate))
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY", str(key))
    before = copy.deepcopy(dask.config.config)
    yield
    dask.config.config.clear()
    dask.config.config.update(before)


def cluster_command(folder, address):
    dask.config.refresh()  # reads the environment
    words = ["cluster", str(folder / "data.parquet"), "-k", "3", "--json", "--output", str(folder / address[:3])]
    return CliRunner().invoke(app, [*words, "--scheduler", address])


def test_the_command_line_fits_over_tls_and_plain_clients_are_refused(tls, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = 9 * rng.normal(size=(3, 2))[rng.integers(0, 3, 400)] + rng.normal(size=(400, 2))
    pd.DataFrame(rows, columns=["a", "b"]).to_parquet(tmp_path / "data.parquet", row_group_size=100)
    cluster = Cluster(tmp_path, protocol="tls")
    try:
        cluster.start_worker("one")
        done = cluster_command(tmp_path, cluster.address)
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["rows"] == 400
        monkeypatch.setenv("DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION", "False")
        refused = cluster_command(tmp_path, cluster.address.replace("tls://", "tcp://"))
        assert refused.exit_code == 2
        assert "scheduler" in refused.stderr
    finally:
        cluster.close()
