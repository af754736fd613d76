import os

import pytest

from cones.threads import for_row_blocks, thread_count


def test_omp_num_threads_limits_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = thread_count()
    assert 1 <= cores <= (os.cpu_count() or 1)
    for value, expected in (("1", 1), ("1,2", 1), ("9999", cores), ("many", cores), ("0", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert thread_count() == expected


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (3, 4), (0, 10), (5, 112)])
def test_blocks_cover_the_rows_once(start: int, stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cones.threads.thread_count", lambda: 3)
    rows: list[int] = []
    for_row_blocks(lambda first, last: rows.extend(range(first, last)), start, stop)
    assert sorted(rows) == list(range(start, stop))


def test_an_exception_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cones.threads.thread_count", lambda: 2)

    def work(first: int, last: int) -> None:
        if first:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        for_row_blocks(work, 0, 2)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cones.threads.thread_count", lambda: 2)
    for_row_blocks(lambda first, last: None, 0, 2)
    child = os.fork()
    if child == 0:
        for_row_blocks(lambda first, last: None, 0, 2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
