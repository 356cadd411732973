"""What ordinary code does with a device, in issue order and late, against the CPU where that has an answer."""

import copy
import io
import pickle
import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn

import kvstage


def trained(device: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.AdamW(layers.parameters(), lr=0.1)
    rows = torch.linspace(-1, 1, 12).view(3, 4).to(device)
    for _ in range(2):
        optimizer.zero_grad()
        layers(rows).square().sum().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in layers.parameters()]


def test_training() -> None:
    assert all(torch.allclose(one, two, atol=1e-5) for one, two in zip(trained("cpu"), trained("cuda"), strict=True))


def convolved(device: str) -> torch.Tensor:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).to(device)
    result: torch.Tensor = layers(torch.linspace(-1, 1, 384).view(2, 3, 8, 8).to(device))
    result.sum().backward()
    return result.detach().cpu()


def attended(device: str) -> torch.Tensor:
    rows = torch.linspace(-1, 1, 80).view(1, 2, 5, 8).to(device)
    return nn.functional.scaled_dot_product_attention(rows, rows, rows, is_causal=True).cpu()


def families(device: str) -> torch.Tensor:
    rows, index = torch.linspace(-2, 2, 30).view(6, 5).to(device), torch.tensor([3, 1], device=device)
    rows[index] = 1
    rows.index_add_(0, index, torch.ones(2, 5, device=device))
    rows.scatter_(0, index.view(1, 2), 4.0)
    rows.masked_fill_(rows > 3, 0.5)
    rows[1:, ::2].mul_(2)
    rows.t()[0].zero_()
    parts = [rows.index_select(0, index), rows.gather(1, index.view(1, 2)), rows[rows > 0], rows.topk(2).values, rows.cumsum(0)]
    parts += [
        torch.cat([rows, rows]),
        torch.stack([rows, rows]),
        rows.nonzero(),
        rows.softmax(-1),
        rows.half().bfloat16(),
        rows.std(),
    ]
    parts += [torch.where(rows > 0, rows, 0.0), torch.einsum("ab,cb->ac", rows, rows), rows.unfold(0, 2, 1), torch.tril(rows)]
    parts += [rows.expand(2, 6, 5).contiguous(), rows.to(torch.complex64).conj() * 1j, torch.arange(3, device=device) ** 2]
    out = torch.empty(0, device=device)
    torch.add(rows, rows, out=out)
    parts.append(out)
    return torch.cat([torch.view_as_real(each.to(torch.complex64).cpu().resolve_conj()).reshape(-1) for each in parts])


@pytest.mark.parametrize("body", [convolved, attended, families], ids=lambda body: body.__name__)
def test_the_same_as_on_the_cpu(body: Callable[[str], torch.Tensor]) -> None:
    assert torch.allclose(body("cpu"), body("cuda"), atol=1e-4)


OF_A_NUMBER: list[Callable[[torch.Tensor, float], torch.Tensor]] = [
    lambda rows, number: rows % number,
    lambda rows, number: number % rows,
    lambda rows, number: rows.clone().remainder_(int(number)),
    lambda rows, number: rows.int() & int(number),
    lambda rows, number: rows.int().clone().bitwise_xor_(int(number)),
    lambda rows, number: (rows > 2) | bool(number),
    lambda rows, number: torch.fmod(rows, number),
    lambda rows, number: torch.xlogy(rows, number),
    lambda rows, number: torch.xlogy(number, rows),
    lambda rows, number: torch.copysign(rows, -number),
    lambda rows, number: rows * number,
    lambda rows, number: torch.where(rows > 2, rows, number),
]


@pytest.mark.parametrize("shape", [(4,), ()])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.float16, torch.float32, torch.float64])
def test_numbers_take_part_in_type_promotion_as_on_the_cpu(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    for at, body in enumerate(OF_A_NUMBER):
        for number in (3, 2.1):
            rows = torch.tensor([1, 2, 3, 4] if shape else 3, dtype=dtype)
            want, gave = body(rows, number), body(rows.cuda(), number).cpu()
            assert want.dtype is gave.dtype, (at, number)
            assert torch.equal(want, gave), (at, number)


def test_a_number_as_it_comes_is_refused_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvstage.cuda.operators.Operator.with_tensors", lambda known, args, kwargs: args)
    rows = torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor'"):
        (rows % 3).cpu()


def test_modules_move_and_are_kept() -> None:
    module, file = nn.Linear(2, 2).cuda(), io.BytesIO()
    assert type(module.weight) is nn.Parameter
    assert module.weight.is_cuda
    torch.save(module.state_dict(), file)
    file.seek(0)
    assert torch.equal(torch.load(file)["weight"].cpu(), module.weight.detach().cpu())
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert twin.weight.is_cuda
        assert torch.equal(twin.weight.cpu(), module.cpu().weight.cpu())
        module.cuda()


def test_a_loader_pins() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    assert [batch[0].is_pinned() for batch in torch.utils.data.DataLoader(data, 2, pin_memory=True)] == [True] * 4


def test_autocast_checkpoint_and_threads() -> None:
    from torch.utils.checkpoint import checkpoint

    rows = torch.ones(2, 2, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (rows @ rows).dtype is torch.bfloat16
    checkpoint(lambda each: each.exp(), rows, use_reentrant=False).sum().backward()
    assert rows.grad is not None
    sums: list[float] = []

    def work() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            sums.append((torch.ones(4, device="cuda") * 3).sum().item())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sums == [12.0] * 3


def test_activations_saved_in_pinned_memory() -> None:
    rows = torch.linspace(-1, 1, 12, device="cuda", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = rows.exp().square().sum()
    loss.backward()
    assert rows.grad is not None
    assert torch.allclose(rows.grad, 2 * (2 * rows).exp())


def test_torch_compile_with_an_eager_backend() -> None:
    compiled = torch.compile(lambda rows: rows * 2 + 1, backend="eager")
    assert compiled(torch.ones(3, device="cuda")).tolist() == [3.0] * 3


def test_a_custom_operator_with_a_kernel_of_the_cpu() -> None:
    library = torch.library.Library("kvstage_test", "FRAGMENT")
    library.define("twice(Tensor rows) -> Tensor")
    library.impl("twice", lambda rows: rows * 2, "CPU")
    assert torch.ops.kvstage_test.twice(torch.ones(2, device="cuda")).tolist() == [2.0, 2.0]


def test_faces() -> None:
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert isinstance(torch.cuda.Stream(priority=-1), torch.Stream)
    assert torch.accelerator.current_stream() == torch.cuda.current_stream()
    assert torch.cuda.get_device_properties(0).total_memory == torch.cuda.mem_get_info()[1]
    with torch.device("cuda"):
        assert nn.Linear(2, 2).weight.is_cuda
    with pytest.raises(TypeError, match="can't convert cuda"):
        torch.ones(2, device="cuda").numpy()
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device="cuda") + torch.ones(2)
    with pytest.raises(RuntimeError, match="cannot pin"):
        torch.ones(2, device="cuda").pin_memory()
    assert torch.empty(3, pin_memory=True).is_pinned()


@pytest.fixture(autouse=True, params=["issue-order", "late"])
def run(request: pytest.FixtureRequest) -> object:
    with kvstage.simulated_cuda(request.param) as run:
        yield run
    assert run.findings == ()
