"""What an operator reads and writes, by its schema; and how its tensors are exchanged for others."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import torch

VIEWS = frozenset({"aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_split_with_sizes", "aten::unsafe_chunk", "aten::set_"})
"""Give the memory that they are given, though their schemas do not say so; and what changes a tensor, but no byte."""

SYNCHRONISING = frozenset(
    {
        "aten::_local_scalar_dense",
        "aten::equal",
        "aten::is_nonzero",
        "aten::nonzero",
        "aten::nonzero_numpy",
        "aten::masked_select",
        "aten::_unique",
        "aten::_unique2",
        "aten::unique_consecutive",
        "aten::unique_dim",
        "aten::unique_dim_consecutive",
        "aten::bincount",
        "aten::repeat_interleave",
        "aten::_assert_async",
    }
)
"""Wait for the stream, since the host needs the result or its size (docs of each; torch.cuda.set_sync_debug_mode lists such)."""

EXACT = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
"""What holds a number of Python as it is."""

INDEXED = frozenset({"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})


class Operator:
    """What the schema of an operator says, asked once."""

    def __init__(self, op: Any) -> None:
        schema = op._schema
        self.op = op
        self.name: str = schema.name
        self.text = str(op)
        returns = [each.alias_info for each in schema.returns]
        self.is_view = self.name in VIEWS or any(alias is not None and not alias.is_write for alias in returns)
        self.new_results = [alias is None for alias in returns]
        self.arguments = [(each.name, each.alias_info is not None and each.alias_info.is_write) for each in schema.arguments]
        self.tensors = [at for at, each in enumerate(schema.arguments) if str(each.type) in ("Tensor", "Optional[Tensor]")]
        self.takes_numbers = torch._C._should_allow_numbers_as_tensors(self.name.removeprefix("aten::"))
        self.positions = {name: at for at, (name, _) in enumerate(self.arguments)}
        self.writes = any(write for _, write in self.arguments)
        self.has_out = any(each.is_out for each in schema.arguments)
        self.is_random = torch.Tag.nondeterministic_seeded in op.tags
        self.takes_generator = any(each.name == "generator" for each in schema.arguments)
        self.has_index = self.name in INDEXED
        self.decomposes = op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeExplicitAutograd) or (
            op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
        )

    def value(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], default: Any = None) -> Any:
        """The value of an argument in a call."""
        at = self.positions.get(name, len(args))
        return args[at] if at < len(args) else kwargs.get(name, default)

    def with_tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """A call's arguments with a tensor [] for each number that stands for one: `x % 3` comes with 3, and the kernel refuses it.

        It takes part in type promotion as the number does (docs: torch.result_type), which is of less weight than a tensor [].
        """
        if self.takes_numbers:
            return args
        places = [at for at in self.tensors if at < len(args)]
        numbers = [at for at in places if type(args[at]) in EXACT]
        if not numbers:
            return args
        others = [args[at] for at in places if isinstance(args[at], torch.Tensor) and not self.arguments[at][1]]
        floating = any(each.is_floating_point() for each in tensors_in(self.written(args, kwargs)))
        return tuple(_tensor_of(each, others, floating) if at in numbers else each for at, each in enumerate(args))

    def written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments that a call writes to, tensors or lists of them."""
        if not self.writes:
            return []
        pairs = ((self.value(name, args, kwargs), write) for name, write in self.arguments)
        return [value for value, write in pairs if write and value is not None]

    def synchronises(self, args: tuple[Any, ...]) -> bool:
        """Whether the host waits for a call's result."""
        if self.name in SYNCHRONISING:
            return self.name != "aten::repeat_interleave" or self.op._overloadname in ("Tensor", "self_Tensor")
        return self.has_index and any(tensor.dtype in (torch.bool, torch.uint8) for tensor in tensors_in(args[1]))

    def result(self, args: tuple[Any, ...], kwargs: dict[str, Any], new: Any) -> Any:
        """What a call returns: what it wrote to, where the schema says so, and what is new."""
        if not self.new_results:
            return None
        if all(self.new_results):
            return new
        written = iter(self.written(args, kwargs))
        fresh = iter(new if isinstance(new, tuple | list) else (new,))
        results = [next(fresh) if each else next(written) for each in self.new_results]
        return results[0] if len(results) == 1 else tuple(results)


def _tensor_of(number: complex, others: list[torch.Tensor], floating: bool) -> torch.Tensor:
    """A tensor [] of a number's full precision, or of the promoted dtype if its own would change what the others promote to.

    `floating`: the result is of floating point, where an integer changes nothing, and must not wrap to one of the others' size.
    """
    exact = torch.tensor(number, device="cpu", dtype=EXACT[type(number)])
    promoted = [torch.result_type(each, number) for each in others]
    if (floating and isinstance(number, int)) or promoted == [torch.result_type(each, exact) for each in others]:
        return exact
    return exact.to(reduce(torch.promote_types, promoted))


_known: dict[Any, Operator] = {}


def operator(op: Any) -> Operator:
    """What is known of an operator."""
    found = _known.get(op)
    if found is None:
        found = _known[op] = Operator(op)
    return found


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an argument, of a call's arguments, or of its results: schemas nest lists once."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)


def exchanged(value: Any, exchange: Callable[[Any], Any]) -> Any:
    """A value with each leaf exchanged: lists stay lists."""
    if isinstance(value, tuple):
        return tuple(exchanged(each, exchange) for each in value)
    if isinstance(value, list):
        return [exchanged(each, exchange) for each in value]
    if isinstance(value, dict):
        return {name: exchanged(each, exchange) for name, each in value.items()}
    return exchange(value)
