"""The lines of a C++ function while they are written: blocks, fresh names, and definitions that nothing uses left out."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

INDENT = "    "
WORDS = """
    alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not nullptr operator or
    private protected public register return short signed sizeof static struct switch template this throw true try typedef
    typeid typename union unsigned using virtual void volatile wchar_t while xor concept requires backend std kvstage
"""
KEYWORDS = frozenset(WORDS.split())


@dataclass(frozen=True)
class Line:
    """One line, and the name that it defines, if it does nothing else."""

    depth: int
    text: str
    defines: str | None = None


class Lines:
    """What is written so far. A name is taken in its block and in those around it, never beside it."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self.written: list[Line] = []
        self.blocks: list[set[str]] = [set(taken)]

    @property
    def depth(self) -> int:
        """How many blocks are open."""
        return len(self.blocks) - 1

    def fresh(self, name: str) -> str:
        """A C++ name like this one, that is not taken here."""
        taken = set().union(*self.blocks) | KEYWORDS
        plain = re.sub(r"\W+", "_", name)
        found = next(each for each in (plain, *(f"{plain}_{number}" for number in range(2, 1000))) if each not in taken)
        self.blocks[-1].add(found)
        return found

    def add(self, text: str, defines: str | None = None) -> None:
        """A line in the open block."""
        self.written.append(Line(self.depth, text, defines))

    def define(self, kind: str, name: str, value: str) -> str:
        """`const kind name = value`, under a name that is not taken; an aggregate's value begins with a brace."""
        fresh = self.fresh(name)
        self.add(f"const {kind} {fresh}{'' if value.startswith('{') else ' = '}{value};", fresh)
        return fresh

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A block under this line. One more may follow it on its last line, as `else` does."""
        if head.startswith("} "):
            assert self.written[-1].text == "}", "the block before it has just ended"
            self.written.pop()
        self.add(head)
        self.blocks.append(set())
        yield
        self.blocks.pop()
        self.add("}")


def useful(lines: Sequence[Line], more: str = "") -> list[Line]:
    """The lines without definitions that nothing uses, in their block or in `more`, which stands at the end."""
    kept = list(lines)
    while True:
        used = [line for number, line in enumerate(kept) if line.defines is None or _is_used(kept, number, more)]
        if len(used) == len(kept):
            return kept
        kept = used


def _is_used(lines: Sequence[Line], number: int, more: str) -> bool:
    """In the lines after it, as far as its block goes."""
    line, scope = lines[number], []
    for later in lines[number + 1 :]:
        if later.depth < line.depth:
            break
        scope.append(later.text)
    else:
        scope.append(more)
    return any(re.search(rf"\b{re.escape(line.defines or '')}\b", text) for text in scope)


def indented(lines: Sequence[Line], by: int) -> list[Line]:
    """The lines, so many blocks deeper."""
    return [replace(line, depth=line.depth + by) for line in lines]


def text(lines: Sequence[Line], depth: int) -> str:
    """The lines as C++, `depth` blocks deep."""
    return "".join(f"{INDENT * (line.depth + depth) if line.text else ''}{line.text}\n" for line in lines)
