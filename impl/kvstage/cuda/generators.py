"""Random numbers of the device: a seed for each operator, drawn when it is issued, so every schedule gives the same numbers.

The numbers are those of torch's CPU generator, not those of a GPU.
"""

from typing import Any

import torch

Plain = torch.Generator


class Generator(Plain):
    """`torch.Generator(device="cuda")`: one of the CPU's that says that it is on the device."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """A generator for the CPU is torch's own."""
        if torch.device(device).type != "cuda":
            return Plain(device)
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """cuda:0."""
        return torch.device("cuda", 0)


default = Plain("cpu")
"""The device's own."""


def draw(generator: torch.Generator | None) -> int:
    """A seed for one operator."""
    return int(torch.randint(0, 1 << 62, (), generator=generator or default, device="cpu"))


def manual_seed(seed: int) -> None:
    """`torch.cuda.manual_seed`."""
    default.manual_seed(int(seed))


def get_rng_state(device: Any = None) -> torch.Tensor:
    """`torch.cuda.get_rng_state`."""
    return default.get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """`torch.cuda.set_rng_state`."""
    default.set_state(state)
