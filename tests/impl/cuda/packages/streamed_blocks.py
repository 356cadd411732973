"""block-streamer: gradients of parameters that blocks share, in micro-batches."""

import torch
from block_streamer import StreamedModel
from block_streamer.microbatch import MicroBatchConfig, Telemetry, micro_forward
from torch import nn

import kvstage
from tests.impl.cuda.packages.under_schedules import tell

rows = torch.linspace(-1, 1, 64).view(4, 16)


class Block(nn.Module):
    def __init__(self, shared: nn.Linear) -> None:
        super().__init__()
        self.up, self.down, self.shared = nn.Linear(16, 32), nn.Linear(32, 16), shared

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = rows + self.down(torch.relu(self.up(rows)))
        return rows + self.shared(rows)


def blocks() -> list[Block]:
    torch.manual_seed(0)
    shared = nn.Linear(16, 16)
    return [Block(shared) for _ in range(5)]


def gradients(module: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in module.parameters() if parameter.grad is not None])


def streamed() -> torch.Tensor:
    model = StreamedModel(blocks(), prefetch_ahead=1).train()
    result, _ = micro_forward(model, rows.cuda(), MicroBatchConfig(count=2), Telemetry())
    result.square().sum().backward()
    return gradients(nn.ModuleList(model.blocks))


def plain() -> torch.Tensor:
    model = nn.Sequential(*blocks())
    model(rows).square().sum().backward()
    return gradients(model)


with kvstage.simulated_cuda():
    pass
tell(streamed, plain())
