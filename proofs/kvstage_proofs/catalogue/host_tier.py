"""The host tier's decision, and rules that are wrong in one way: each must be refuted, at the step where it goes wrong."""

from collections.abc import Iterator

from kvstage_model.tier.generations import Block, Mirror, mirrored, still_right

from ..obligation import Obligation, Verdict
from ..theorems.h1_host_tier import H1, Rules


def reused_without_a_generation(block: Block, length: int) -> Block:
    """A block goes to another owner, and nothing says so."""
    return block if length >= block.written else Block(block.generation, length, length)


def cut_one_row_late(block: Block, length: int) -> Block:
    """A row that is written again after a truncation counts as kept."""
    return block if length >= block.written else Block(block.generation + 1, length + 1, length)


def appended_always(block: Block, _: int, stop: int) -> Block:
    """A rewrite in place, of a prefix that is shared, is taken for an append."""
    return Block(block.generation, block.kept, max(block.written, stop))


def of_any_block(mirror: Mirror, number: int, block: Block) -> int:
    """The table may name another block by now."""
    return still_right(Mirror(number, mirror.generation, mirror.right), number, block)


def of_any_generation(mirror: Mirror, number: int, block: Block) -> int:
    """What was kept is what was kept since the generation before, and since no earlier one."""
    if mirror.block != number:
        return 0
    return mirror.right if mirror.generation == block.generation else min(mirror.right, block.kept)


def as_many_as_were_kept(mirror: Mirror, number: int, block: Block) -> int:
    """Rows that were kept need not have been moved."""
    return block.kept if mirror.generation + 1 == block.generation else still_right(mirror, number, block)


def one_row_more(mirror: Mirror, number: int, block: Block, wanted: int) -> Mirror:
    """The row after those that were moved was not moved."""
    made = mirrored(mirror, number, block, wanted)
    return Mirror(made.block, made.generation, made.right + 1)


BROKEN = {
    "with reuse unseen": Rules(cut=reused_without_a_generation),
    "with a cut one row late": Rules(cut=cut_one_row_late),
    "with rewrites taken for appends": Rules(rewritten=appended_always),
    "of any block": Rules(still_right=of_any_block),
    "of any generation": Rules(still_right=of_any_generation),
    "of rows never moved": Rules(still_right=as_many_as_were_kept),
    "with a row too many": Rules(mirrored=one_row_more),
}


def obligations() -> Iterator[Obligation]:
    """The tier, PROVED, and its mistakes."""
    yield H1.of(Rules(), "host tier")
    for mistake, rules in BROKEN.items():
        yield H1.of(rules, f"host tier {mistake}", expected=Verdict.REFUTED)
