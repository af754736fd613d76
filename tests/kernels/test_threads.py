import os

import pytest

from cones.kernels.threads import for_blocks, thread_count


def test_omp_num_threads_limits_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = thread_count()
    assert 1 <= cores <= (os.cpu_count() or 1)
    for value, expected in (("1", 1), ("1,2", 1), ("9999", cores), ("many", cores), ("0", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert thread_count() == expected


@pytest.mark.parametrize("count", [0, 1, 2, 10, 107])
def test_blocks_cover_all_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cones.kernels.threads.thread_count", lambda: 3)
    rows: list[int] = []
    for_blocks(lambda first, last: rows.extend(range(first, last)), count)
    assert sorted(rows) == list(range(count))


def test_an_exception_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cones.kernels.threads.thread_count", lambda: 2)

    def work(first: int, last: int) -> None:
        if first:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        for_blocks(work, 2)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cones.kernels.threads.thread_count", lambda: 2)
    for_blocks(lambda first, last: None, 2)
    child = os.fork()
    if child == 0:
        for_blocks(lambda first, last: None, 2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
