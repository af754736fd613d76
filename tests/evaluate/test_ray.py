"""On a real Ray cluster of two nodes on this machine, of which one is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import cones

SCRIPT = """
import threading, time
import numpy as np
import ray
from ray.cluster_utils import Cluster
import cones
from cones import StateError
from cones.evaluate import Objective, evaluator_from
from helpers import descendants, is_alive, listening, wait_until
from objectives import DiesOnArrival, Fails, hangs_with_a_program, loss, slow_loss
import logging, os, sys, pathlib

if __name__ == "__main__":
    settings = dict(sigma0=0.5, popsize=12, rng=0, maxiter=4)
    start, folder = np.zeros(5), pathlib.Path(sys.argv[1])
    expected = cones.minimize(loss, start, **settings)

    def check(result):
        np.testing.assert_array_equal(result.mean, expected.mean)
        assert result.failures == [], result.failures

    with evaluator_from(Objective(loss), "ray"):
        addresses = listening(descendants(os.getpid()))
        assert addresses and all(address.is_loopback for address in addresses), addresses
        print("loopback", flush=True)
        (folder / "arrival").mkdir()
        check(cones.minimize(DiesOnArrival(folder / "arrival", 1), start, workers="ray", retries=0, **settings))
        assert len(list((folder / "arrival").iterdir())) > 1
        print("never began", flush=True)
        (folder / "die").mkdir()
        with evaluator_from(Objective(Fails("die", folder / "die", 10**6, 0.0, 1e9)), "ray", retries=1) as evaluator:
            assert np.isnan(evaluator.losses(np.zeros((1, 5)))).all()
            assert evaluator.failures == {0: "its worker was lost (tried 2 times)"}, evaluator.failures
        print("died", flush=True)
        hanging = Objective(hangs_with_a_program, (str(folder),))
        with evaluator_from(hanging, "ray", timeout=1.0, retries=0) as evaluator:
            assert np.isnan(evaluator.losses(np.zeros((1, 5)))).all()
        wait_until(lambda: not is_alive(int((folder / "program").read_text())))
        print("program", flush=True)

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    cluster.wait_for_nodes()
    for chunked in (False, True):
        check(cones.minimize(loss, start, workers="ray", chunked=chunked, **settings))
    print("plain", flush=True)
    more = dict(sigma0=0.5, popsize=6, rng=0, maxfev=120, noisy=False)
    result = cones.minimize(loss, start, workers="ray", asynchronous=True, **more)
    assert 110 < result.nfev <= 120 and result.fun == loss(result.x) < 1.5, result
    print("asynchronous", flush=True)
    for how, more in (("raise", {}), ("hang", {"timeout": 2.0})):
        place = folder / how
        place.mkdir()
        check(cones.minimize(Fails(how, place), start, workers="ray", retries=2, **more, **settings))
        assert len(list(place.iterdir())) > 1
        print(how, flush=True)
    try:
        cones.minimize(Fails("raise", folder, times=10**6), start, workers="ray", **settings)
    except ZeroDivisionError:
        print("raises", flush=True)
    lock = threading.Lock()
    try:
        cones.minimize(lambda x: float(lock.locked()), start, workers="ray", **settings)
    except cones.InputError as error:
        assert "fun: expected a function that can be sent" in str(error), error
        print("cannot be sent", flush=True)
    longer = {**settings, "maxiter": 40}
    killed = []

    def kill():
        cluster.remove_node(second, allow_graceful=False)
        killed.append(time.monotonic())

    killer = threading.Timer(0.5, kill)
    killer.start()
    result = cones.minimize(slow_loss, start, workers="ray", retries=0, chunked=True, **longer)
    assert killed and killed[0] < time.monotonic() - 0.1, "the run was over before the node was killed"
    np.testing.assert_array_equal(result.mean, cones.minimize(loss, start, **longer).mean)
    assert result.failures == []
    deadline = time.monotonic() + 60.0
    while ray.cluster_resources()["CPU"] != 1.0 and time.monotonic() < deadline:
        time.sleep(0.5)
    check(cones.minimize(loss, start, workers="ray", **settings))
    print("node killed", flush=True)
    ray.shutdown()
    cluster.shutdown()
"""


def test_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),  # Ray writes there
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), str(Path(cones.__file__).parents[1])]),
        "RAY_TMPDIR": f"/tmp/cones-ray-{os.getpid()}",  # paths of sockets must be short
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=300, env=environment,
        check=False,
    )  # fmt: skip
    subprocess.run(["rm", "-rf", environment["RAY_TMPDIR"]], check=True)
    assert done.returncode == 0, done.stderr[-3000:]
    stages = [
        "loopback",
        "never began",
        "died",
        "program",
        "plain",
        "asynchronous",
        "raise",
        "hang",
        "raises",
        "cannot be sent",
        "node killed",
    ]
    assert [line for line in done.stdout.splitlines() if line in stages] == stages  # Ray has its say, too
