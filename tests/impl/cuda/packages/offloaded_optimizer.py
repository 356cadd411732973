"""torchao: an optimizer that keeps its state on the host; weights that are read between backward and step, as a log does."""

import torch
from torch import nn

import kvstage
from tests.impl.cuda.packages.under_schedules import tell

rows = torch.linspace(-1, 1, 64).view(4, 16)


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def steps(device: str) -> torch.Tensor:
    from torchao.optim import CPUOffloadOptimizer

    module, outputs = layers().to(device), []
    if device == "cuda":
        optimizer = CPUOffloadOptimizer(module.parameters(), torch.optim.AdamW, minimal_size=0, lr=1e-2)
    else:
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for _ in range(3):
        module(rows.to(device)).square().sum().backward()
        with torch.no_grad():
            outputs.append(module(rows.to(device)))
        optimizer.step()
        optimizer.zero_grad()
    return torch.stack(outputs).cpu()


with kvstage.simulated_cuda():
    pass
tell(lambda: steps("cuda"), steps("cpu"))
