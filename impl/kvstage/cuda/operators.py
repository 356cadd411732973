"""What an operator reads and writes, by its schema; and how its tensors are exchanged for others."""

from collections.abc import Callable, Iterator
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
