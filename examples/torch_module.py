"""Train a PyTorch module through which no gradient flows: its hidden units are either on or off.

pip install ".[torch]"
python examples/torch_module.py
"""

import torch
from torch.utils.data import DataLoader, TensorDataset

from cones.integrations.torch import minimize_module


class Switch(torch.nn.Module):
    """1 where the input is positive, 0 elsewhere; its derivative is 0 everywhere."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > 0.0).float()


def points(count: int) -> TensorDataset:
    """Points in the plane; the answer is whether one lies in a disc."""
    x = 4.0 * torch.rand(count, 2) - 2.0
    return TensorDataset(x, (x.norm(dim=1) < 1.2).float())


def loss(module: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    x, answer = batch
    return torch.nn.functional.binary_cross_entropy_with_logits(module(x)[:, 0], answer)


def wrong(module: torch.nn.Module, data: TensorDataset) -> float:
    x, answer = data[:]
    return ((module(x)[:, 0] > 0.0) != (answer > 0.5)).float().mean().item()


def main() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 16), Switch(), torch.nn.Linear(16, 1))
    train, test = points(2048), points(2048)
    before = wrong(module, test)
    batches = DataLoader(train, batch_size=128, shuffle=True)
    minimize_module(module, loss, batches, vmap=True, sigma0=0.5, popsize=100, maxiter=100, ftol=None, rng=0)
    print(f"wrong answers before {before:.1%}, after {wrong(module, test):.1%}")


if __name__ == "__main__":
    main()
