"""What the host does with a view, operator by operator: which bytes it reads, and which it writes."""

import copy
import pickle
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from kvstage.checked.host_view import HostView, plain


class Watching:
    """Knows one tensor's memory, and lists which of its elements were read and written."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.memory = memory
        self.read: list[list[int]] = []
        self.written: list[list[int]] = []

    def knows(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() == self.memory.untyped_storage().data_ptr()

    def touch(self, read: Sequence[torch.Tensor], written: Sequence[torch.Tensor], act: Callable[[], None]) -> None:
        numbers = torch.arange(self.memory.numel())
        for seen, tensors in ((self.read, read), (self.written, written)):
            for tensor in tensors:
                if self.knows(tensor):
                    seen.append(
                        sorted(numbers.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten().tolist())
                    )
        act()


def array_of_doubles(tensor: torch.Tensor) -> object:
    """Numpy warns of a plain tensor, which does not know all that it may ask for."""
    return np.array(tensor if isinstance(tensor, HostView) else tensor.numpy(), np.float64)


OTHER = torch.ones(2, 3)
ALL = [0, 1, 2, 3, 4, 5]

USES: dict[str, tuple[Callable[[torch.Tensor], object], list[list[int]] | None, list[list[int]]]] = {
    "item": (lambda t: t[1, 2].item(), [[5]], []),
    "float": (lambda t: float(t[0, 0]), [[0]], []),
    "bool": (lambda t: bool(t[0, 1]), [[1]], []),
    "tolist": (lambda t: t[0].tolist(), [[0, 1, 2]], []),
    "numpy": (lambda t: t.numpy(), [ALL], []),
    "asarray": (lambda t: np.asarray(t[:, 1]), [[1, 4]], []),
    "array of another dtype": (array_of_doubles, [ALL], []),
    "clone": (lambda t: t[1].clone(), [[3, 4, 5]], []),
    "to": (lambda t: t.to(torch.float64), [ALL], []),
    "add": (lambda t: t + 1, [ALL], []),
    "other side of an operator": (lambda t: OTHER * t, [ALL], []),
    "equal": (lambda t: torch.equal(t, OTHER), [ALL], []),
    "stack": (lambda t: torch.stack([t[0], t[1]]), [[0, 1, 2], [3, 4, 5]], []),
    "copied from": (lambda t: OTHER.clone().copy_(t), [ALL], []),
    "taken into another": (lambda t: OTHER.clone()[0].__setitem__(slice(None), t[1]), [[3, 4, 5]], []),
    "out of another": (lambda t: torch.add(t, 1, out=torch.empty(2, 3)), [ALL], []),
    "one formatted": (lambda t: f"{t[1, 2]:.2f}", [[5]], []),
    "one without a format": (lambda t: f"{t[1, 2]}", [[5]], []),
    "printed": (lambda t: repr(t[0, :1]), [[0]], []),
    "pickled": (lambda t: pickle.loads(pickle.dumps(t[0])), [[0, 1, 2]], []),
    "copied": (lambda t: copy.copy(t[1]), [[3, 4, 5]], []),
    "compared": (lambda t: torch.testing.assert_close(t[0], torch.arange(3.0)), None, []),
    "copied whole": (lambda t: copy.deepcopy(t), [ALL], []),
    "set one": (lambda t: t.__setitem__((1, 0), 5.0), [], [[3]]),
    "set a row": (lambda t: t.__setitem__(1, OTHER[0]), [], [[3, 4, 5]]),
    "fill": (lambda t: t[:, 0].fill_(2.0), [], [[0, 3]]),
    "zero": (lambda t: t.zero_(), [], [ALL]),
    "random": (lambda t: t.uniform_(), [], [ALL]),
    "in place": (lambda t: t.add_(1), [], [ALL]),
    "augmented": (lambda t: t.__iadd__(1), [], [ALL]),
    "copy_": (lambda t: t.copy_(OTHER), [], [ALL]),
    "out": (lambda t: torch.add(OTHER, 1, out=t), [], [ALL]),
    "within itself": (lambda t: t[0].copy_(t[1]), [[3, 4, 5]], [[0, 1, 2]]),
    "many at once": (lambda t: torch._foreach_add_([t[0], t[1]], 1.0)[0], [], [[0, 1, 2], [3, 4, 5]]),
    "looks": (lambda t: (t.shape, t.stride(), t.data_ptr(), t.is_contiguous(), t[0], t.view(3, 2), t.T, t.dtype, len(t)), [], []),
}


@pytest.mark.parametrize("name", USES)
def test_each_use_is_noted_and_does_what_it_does_to_a_plain_tensor(name: str) -> None:
    use, read, written = USES[name]
    tensor, same = torch.arange(6.0).view(2, 3), torch.arange(6.0).view(2, 3)
    watching = Watching(tensor)
    torch.manual_seed(0)
    result = use(HostView.of(tensor, watching))
    torch.manual_seed(0)
    expected = use(same)
    assert watching.written == written
    assert watching.read == read or (read is None and watching.read)
    assert torch.equal(tensor, same)
    if isinstance(expected, torch.Tensor):
        assert torch.equal(plain(result), expected)
    elif isinstance(expected, np.ndarray):
        assert np.array_equal(result, expected)
    elif isinstance(expected, int | float | list | str) and name != "printed":
        assert result == expected


def test_views_are_noted_and_results_of_their_own_are_not() -> None:
    view = HostView.of(torch.arange(6.0).view(2, 3), watching := Watching(torch.empty(0)))
    watching.memory = plain(view)
    for other in (view[0], view.T, view.view(6), view.data, view.detach(), view.add_(0), *view.unbind(), view[:, None]):
        assert isinstance(other, HostView)
    for own in (view + 1, view.clone(), view.sum(), torch.empty_like(view), view == 1):
        assert type(own) is torch.Tensor
    assert not isinstance(plain(view), HostView)


def test_a_view_of_a_view_is_noted_where_it_lies() -> None:
    tensor = torch.arange(6.0).view(2, 3)
    watching = Watching(tensor)
    part = HostView.of(tensor, watching)[:, 1:][1]
    part[0] = 9.0
    assert (part.tolist(), watching.read, watching.written) == ([9.0, 5.0], [[4, 5]], [[4]])


def test_an_array_that_is_kept_is_seen_as_one_read_alone() -> None:
    watching = Watching(tensor := torch.zeros(3))
    array = HostView.of(tensor, watching).numpy()
    array[1] = 7
    assert (watching.read, watching.written) == ([[0, 1, 2]], [])
    assert tensor.tolist() == [0.0, 7.0, 0.0]


def test_a_whole_tensor_in_a_text_is_read() -> None:
    watching = Watching(tensor := torch.zeros(3))
    view = HostView.of(tensor, watching)
    assert f"{view}" == repr(view)
    assert watching.read == [[0, 1, 2]] * 2
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{view:d}"


def test_an_operator_that_fails_is_an_error_as_ever() -> None:
    view = HostView.of(torch.zeros(3), Watching(torch.zeros(3)))
    with pytest.raises(RuntimeError, match="size"):
        view.copy_(torch.zeros(4))
