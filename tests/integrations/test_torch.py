"""PyTorch itself is the truth: its own flat vector, its own forward pass, its own least squares."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cones.integrations.torch import minimize_module, parameters_from_vector, parameters_to_vector


class Mixed(torch.nn.Module):
    """A frozen layer, a shared one, two dtypes, and buffers that a forward pass changes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.frozen = torch.nn.Linear(4, 4)
        self.frozen.requires_grad_(False)
        self.norm = torch.nn.BatchNorm1d(4)
        self.last = torch.nn.Linear(4, 4)
        self.again = self.last
        self.scale = torch.nn.Parameter(torch.tensor(1.5, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.last(self.norm(self.frozen(self.first(x))))) * self.scale


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


class TestVector:
    def test_is_pytorchs(self) -> None:
        module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
        expected = torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
        np.testing.assert_array_equal(parameters_to_vector(module), expected)

    def test_there_and_back_keeps_everything_else(self) -> None:
        module = Mixed()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        vector = parameters_to_vector(module)
        assert vector.dtype == np.float64
        assert vector.size == 1 + (3 * 4 + 4) + 2 * 4 + (4 * 4 + 4)
        parameters_from_vector(module, vector + 1.0)
        for name, value in module.state_dict().items():
            assert value.dtype == before[name].dtype
            assert value.shape == before[name].shape
            moved = not (name.startswith("frozen") or "running" in name or "num_batches" in name)
            torch.testing.assert_close(value, before[name] + 1.0 if moved else before[name])
        assert module.again is module.last
        assert not module.frozen.weight.requires_grad
        assert module.first.weight.requires_grad
        np.testing.assert_allclose(parameters_to_vector(module), vector + 1.0, rtol=1e-6)

    @pytest.mark.parametrize(
        ("module", "vector", "error", "message"),
        [
            (torch.nn.Linear(2, 1), [1.0, 2.0], ValueError, r"expected shape \(3,\)"),
            (torch.nn.Tanh(), [], ValueError, "requires_grad=True, got none"),
            (torch.nn.LazyLinear(2), [], ValueError, "weight is not initialised"),
            (torch.nn.Linear(1, 1, dtype=torch.complex64), [], TypeError, "weight is torch.complex64"),
            (torch.zeros(3), [], TypeError, r"expected a torch.nn.Module, got Tensor"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
    def test_refuses(self, module: torch.nn.Module, vector: list[float], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            parameters_from_vector(module, vector)


def squares(module: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    x, y = batch
    return ((module(x) - y) ** 2).mean()


def data(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(rows, 3)
    return x, x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3


class TestMinimizeModule:
    @pytest.mark.parametrize("vmap", [False, True])
    def test_finds_least_squares(self, vmap: bool) -> None:
        module = torch.nn.Linear(3, 1)
        batches = [data(32) for _ in range(3)]
        result = minimize_module(module, squares, batches, vmap=vmap, maxiter=400, popsize=40, rng=0)
        expected = [1.0, -2.0, 0.5, 0.3]
        np.testing.assert_allclose(parameters_to_vector(module), expected, atol=0.05)
        np.testing.assert_allclose(parameters_to_vector(module), result.mean, rtol=1e-6)  # float32

    def test_at_once_is_one_by_one(self) -> None:
        results = []
        for vmap in (False, True):
            torch.manual_seed(1)
            module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
            batches = [tuple(part.double() for part in data(8))]
            results.append(minimize_module(module, squares, batches, vmap=vmap, maxiter=5, popsize=10, rng=0))
        np.testing.assert_allclose(results[0].x, results[1].x, rtol=1e-9)
        np.testing.assert_allclose(results[0].fun, results[1].fun, rtol=1e-9)

    def test_one_batch_per_iteration_begun_again(self) -> None:
        seen: list[int] = []

        def loss(module: torch.nn.Module, batch: int) -> torch.Tensor:
            seen.append(batch)
            assert not torch.is_grad_enabled()
            return module.weight.square().sum()

        minimize_module(torch.nn.Linear(2, 1), loss, range(3), maxiter=5, popsize=4, rng=0)
        # The start, five populations, and the estimate at the mean and at the best candidate.
        assert seen == [0, *(batch for batch in (0, 1, 2, 0, 1) for _ in range(4)), *[2] * 10]

    def test_buffers_are_put_back_after_a_population_at_once(self) -> None:
        class Counts(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.zeros(2))
                self.register_buffer("calls", torch.zeros(()))

        def loss(module: Counts) -> torch.Tensor:
            module.calls.add_(1.0)
            return module.weight.square().sum()

        for vmap in (False, True):
            module = Counts()
            minimize_module(module, loss, vmap=vmap, maxiter=3, popsize=4, rng=0)
            assert float(module.calls) == 0.0

    def test_buffers_are_the_same_for_all_and_put_back(self) -> None:
        module = Mixed()
        before = {name: buffer.clone() for name, buffer in module.named_buffers()}
        x = torch.randn(10, 3)

        def loss(module: Mixed) -> torch.Tensor:
            assert int(module.norm.num_batches_tracked) == 0
            return module(x).square().mean()

        minimize_module(module, loss, maxiter=2, popsize=4, rng=0)
        for name, buffer in module.named_buffers():
            torch.testing.assert_close(buffer, before[name])

    def test_callback_in_both_forms(self) -> None:
        module, best, found = torch.nn.Linear(2, 1), [], []

        def stops(intermediate_result) -> None:
            best.append(intermediate_result.fun)
            if len(best) == 3:
                raise StopIteration

        def loss(module: torch.nn.Module) -> float:
            return float(module.weight.square().sum())

        result = minimize_module(module, loss, popsize=4, rng=0, callback=stops)
        assert result.stop == "callback"
        assert len(best) == 3
        minimize_module(module, loss, popsize=4, rng=0, maxiter=2, callback=lambda x: found.append(x.copy()))
        assert [x.shape for x in found] == [(3,), (3,)]

    def test_after_an_exception_the_module_is_as_before(self) -> None:
        module = torch.nn.Linear(2, 1)
        before = parameters_to_vector(module)
        with pytest.raises(ZeroDivisionError):
            minimize_module(module, lambda module: 1 / 0, rng=0)
        np.testing.assert_array_equal(parameters_to_vector(module), before)

    @pytest.mark.parametrize("vmap", [False, True])
    def test_refuses_a_loss_per_row(self, vmap: bool) -> None:
        with pytest.raises(ValueError, match=r"loss: expected .*, got shape \(5, 1\)"):
            minimize_module(torch.nn.Linear(2, 1), lambda m: m(torch.ones(5, 2)), vmap=vmap, rng=0)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"workers": 2}, TypeError, "takes no argument 'workers'"),
            ({"timeout": 2.0}, TypeError, "takes no argument 'timeout'"),
            ({"retries": 2}, TypeError, "takes no argument 'retries'"),
            ({"checkpoint": "run.ckpt"}, TypeError, "order of batches"),
            ({"vectorized": True}, TypeError, "use vmap=True"),
            ({"batches": []}, ValueError, "can start again"),
            ({"batches": iter([1, 2])}, ValueError, "can start again"),
            ({"callback": 3}, TypeError, "callback: expected a callable"),
            ({"radius": -1.0}, ValueError, "radius"),
        ],
    )
    def test_bad_input_is_named(self, settings: dict, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            minimize_module(torch.nn.Linear(2, 1), lambda m, *batch: m.weight.sum(), rng=0, **settings)
