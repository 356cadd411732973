"""DataLoader: batches in pinned memory, copied while the next one is made."""

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.support.cuda_idioms.idiom import idiom

VALUES = (0.0, 1.0, 2.0, 3.0)


class Values(Dataset[torch.Tensor]):
    """Four numbers."""

    def __len__(self) -> int:
        return len(VALUES)

    def __getitem__(self, at: int) -> torch.Tensor:
        return torch.tensor(VALUES[at])


class Staging:
    """Collates into pinned memory: of its own for each batch, or the same for all."""

    def __init__(self, fresh: bool) -> None:
        self.fresh, self.kept = fresh, torch.empty(2, pin_memory=True)

    def __call__(self, samples: list[torch.Tensor]) -> torch.Tensor:
        """The samples side by side."""
        staging = torch.empty(2, pin_memory=True) if self.fresh else self.kept
        return torch.stack(samples, out=staging)


@idiom("documentation of DataLoader, memory pinning: each batch is pinned anew, so its copy need not be waited for", gives=VALUES)
def pinned_batches_are_sent_without_a_wait(right: bool) -> list[float]:
    if right:
        loader = DataLoader(TensorDataset(torch.tensor(VALUES)), batch_size=2, pin_memory=True, collate_fn=_first_of_each)
    else:
        loader = DataLoader(TensorDataset(torch.tensor(VALUES)), batch_size=2, collate_fn=_Reused())
    return torch.cat([batch.to("cuda", non_blocking=True) for batch in loader]).tolist()


def _first_of_each(samples: list[tuple[torch.Tensor]]) -> torch.Tensor:
    return torch.stack([sample for (sample,) in samples])


class _Reused(Staging):
    def __init__(self) -> None:
        super().__init__(fresh=False)

    def __call__(self, samples: list[tuple[torch.Tensor]]) -> torch.Tensor:  # type: ignore[override]
        return super().__call__([sample for (sample,) in samples])


@idiom("collate functions that pin: memory of its own for each batch", gives=VALUES)
def collate_function_does_not_reuse_its_buffer(right: bool) -> list[float]:
    loader = DataLoader(Values(), batch_size=2, collate_fn=Staging(right))
    return torch.cat([batch.to("cuda", non_blocking=True) for batch in loader]).tolist()


@idiom("documentation of DataLoader: a batch of a type of one's own has a pin_memory method", gives=VALUES)
def batch_type_pins_its_own_memory(right: bool) -> list[float]:
    kept = torch.empty(2, pin_memory=True)

    class Batch:
        def __init__(self, samples: list[torch.Tensor]) -> None:
            self.values = torch.stack(samples)

        def pin_memory(self) -> "Batch":
            self.values = self.values.pin_memory() if right else kept.copy_(self.values)
            return self

    loader = DataLoader(Values(), batch_size=2, collate_fn=Batch, pin_memory=True)
    return torch.cat([batch.values.to("cuda", non_blocking=True) for batch in loader]).tolist()


@idiom("training loops: the batch goes up on a copy stream, and the model's stream waits for it", gives=[1, 5])
def model_waits_for_the_batch_of_the_copy_stream(right: bool) -> list[float]:
    copies, main, sums = torch.cuda.Stream(), torch.cuda.current_stream(), []
    for batch in DataLoader(Values(), batch_size=2, pin_memory=True):
        with torch.cuda.stream(copies):
            sent = batch.to("cuda", non_blocking=True)
        if right:
            main.wait_stream(copies)
        sent.record_stream(main)
        sums.append(sent.sum())
    torch.cuda.synchronize()
    return [each.item() for each in sums]
