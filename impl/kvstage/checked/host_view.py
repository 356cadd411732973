"""Tensors that note what the host does with them.

Torch runs every operator on them through `__torch_function__`; below it a dispatch mode sees the operators themselves,
whose schemas say which tensors are read, which are written, and which are only looked at from another side.

What goes around torch's operators is not noted, and shows by its bytes alone: an array that `numpy()` or `asarray`
returned, from then on (that it was made counts as a read); a memoryview, `data_ptr()`, `untyped_storage()`, `storage()`; what
makes a plain tensor of one, as `torch.Tensor(view)`, `torch.tensor(view)`, `other.new_tensor(view)`,
`view.as_subclass(torch.Tensor)` and `torch.vmap` do; other tensors on the same memory that were there before.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

READ_WHOLE = frozenset({"numpy", "tolist", "__array__", "__dlpack__", "__repr__"})
"""Functions of a tensor that read all of its bytes, and not by an operator."""


MOVES = frozenset({"to", "cuda", "xpu", "type"})
"""Functions that bring a tensor elsewhere. Of their arguments by position, the first truth value is `non_blocking`."""


class Watcher(Protocol):
    """Who is told of each use."""

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor's memory is one whose uses are to be noted."""
        ...  # pragma: no cover

    def touch(self, read: Sequence[torch.Tensor], written: Sequence[torch.Tensor], act: Callable[[], None]) -> None:
        """The host is about to read and write these tensors: calls `act`, once, when it may."""
        ...  # pragma: no cover

    def asynchronous(self, what: str, tensors: Sequence[torch.Tensor]) -> None:
        """A function of torch's is called with `non_blocking=True`: raises if it would be asynchronous on an accelerator."""
        ...  # pragma: no cover


class HostView(torch.Tensor):
    """A tensor whose uses by the host are noted. Views of it are such tensors too; results with memory of their own aren't."""

    watcher: Watcher | None = None

    @classmethod
    def of(cls, tensor: torch.Tensor, watcher: Watcher) -> "HostView":
        """The same memory, noted."""
        with torch._C.DisableTorchFunctionSubclass():
            view = tensor.as_subclass(cls)
        view.watcher = watcher
        return view

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Runs one function of torch, and notes what it reads and writes."""
        kwargs = kwargs or {}
        views = (leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, HostView))
        watcher = next((view.watcher for view in views if view.watcher is not None), None)
        with torch._C.DisableTorchFunctionSubclass():
            if watcher is None:  # made by torch itself, not by `of`
                return func(*args, **kwargs)
            name = getattr(func, "__name__", "")
            if name in MOVES and (kwargs.get("non_blocking") or next((each for each in args[1:] if isinstance(each, bool)), False)):
                watcher.asynchronous(name, ())  # by name: on the CPU there may be nothing to do, and so no operator
            if name in READ_WHOLE:
                return _whole(watcher, func, args, kwargs)
            with _Noting(watcher):
                result = func(*args, **kwargs)
            return tree_map(lambda leaf: _view(leaf, watcher), result)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For numpy, which asks with arguments that torch's own does not know."""
        array = self.numpy()
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __format__(self, spec: str) -> str:
        """As a plain tensor's, which takes a format if it is one number."""
        return object.__format__(self, spec) if self.dim() else format(self.item(), spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        """A plain tensor with memory of its own."""
        return self.clone()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """What is pickled, or copied by `copy.copy`, is a plain tensor with memory of its own."""
        return self.clone().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as one that notes nothing."""
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.detach().as_subclass(torch.Tensor)


def _whole(watcher: Watcher, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    results: list[Any] = []
    watcher.touch((plain(args[0]),), (), lambda: results.append(func(*args, **kwargs)))
    return results[0]


def _view(leaf: Any, watcher: Watcher) -> Any:
    if isinstance(leaf, torch.Tensor) and not isinstance(leaf, HostView) and watcher.knows(leaf):
        return HostView.of(leaf, watcher)
    return leaf


class _Noting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees each operator with its schema."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch's word for "wrap this for the compiler": importing that takes seconds, and nothing is compiled here."""
        return False

    def __init__(self, watcher: Watcher) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._watcher = watcher

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        read, written = [], []
        for argument, value in _arguments(func._schema, args, kwargs):
            if argument.name == "non_blocking" and value:
                moved = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
                self._watcher.asynchronous(func._schema.name.partition("::")[2], tuple(map(plain, moved)))
            alias = argument.alias_info
            tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
            if alias is None:
                read += tensors
            elif alias.is_write:
                written += tensors
        if not read and not written:
            return func(*args, **kwargs)
        results: list[Any] = []
        self._watcher.touch(tuple(map(plain, read)), tuple(map(plain, written)), lambda: results.append(func(*args, **kwargs)))
        return results[0]


def _arguments(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Each argument of an operator with its value, those that were given."""
    for at, argument in enumerate(schema.arguments):
        if at < len(args) and not argument.kwarg_only:
            yield argument, args[at]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]
