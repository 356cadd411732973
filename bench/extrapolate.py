"""What the small model hides: the work of the released model's step, and the cost of staging on a real bus.

Work is counted in floating-point operations of matrix products, two for each multiplication. `operations` counts what
transformers' reference forward does: it attends to every cached row through a mask, and expands every latent row again
in every step. With `serving`, what a serving engine does: each token attends to the rows alone that were selected of
those up to its own, expanded or as they are, whichever is less. Products that the reference writes as
elementwise sums are not counted.
"""

from dataclasses import dataclass

from kvstage.costs import PCIE_5_LEAST, PCIE_5_MOST, Costs
from kvstage_model.schemes.counts import Counts

from .glm import LATENT_WIDTH
from .sizes import INDEX_HEAD_DIM, INDEX_KPOOL, STREAMS, Sizes

LINEAR_CHUNK = 64
"""Tokens that the linear attention takes at once."""

FORMULAS = """\
n new tokens behind h cached ones, T = h + n; two operations for each multiplication of a matrix product:
  attention, a layer   2 n (d q + 512 d + q a k + a v d) + 2 a (512 T + n T) (k + v)
             serving   2 n (d q + 512 d + q a k + a v d) + 2 a min((512 T + R) (k + v), 512 n (k + v) + 2 * 512 R)
                       R = min(h + 1, topk + 3) + min(h + 2, topk + 3) + ... + min(T, topk + 3)
  indexer, a layer     2 n (128 q i + 2 * 128 d + d i) + 2 n (T // 4) i (128 + 1)
  linear, a layer      2 n (4 d l e + 2 (d + l e) e + d l), and for n > 1: + 6 ceil(n / 64) (64 * 64 e + 64 e e) l
  dense MLP, a layer   2 n * 3 d w
  experts, a layer     2 n (d x + 3 d m (p + 1))
  streams, a layer     2 * 2 n (4 * 24 d + 16 d)
  head                 2 d V, for the last token alone
d hidden, a heads, q query rank, k and v widths of a head, i indexer heads, l linear heads of width e, w dense width,
x experts of width m, of which a token takes p and one that all share, V vocabulary"""
"""What `operations` computes, as text."""


def operations(sizes: Sizes, history: int, tokens: int, *, serving: bool = False) -> int:
    """Floating-point operations of the matrix products of one step: `tokens` (at least 1) behind `history`."""
    s, n, total = sizes, tokens, history + tokens
    indexer = n * (s.q_lora * s.index_heads * INDEX_HEAD_DIM + 2 * s.hidden * INDEX_HEAD_DIM + s.hidden * s.index_heads)
    indexer += n * (total // INDEX_KPOOL) * s.index_heads * (INDEX_HEAD_DIM + 1)
    dense = n * 3 * s.hidden * s.dense_width
    experts = n * (s.hidden * s.experts + 3 * s.hidden * s.expert_width * (s.experts_per_token + 1))
    streams = 2 * n * (STREAMS * s.hidden * STREAMS * (STREAMS + 2) + STREAMS * STREAMS * s.hidden)
    layers = s.dsa_layers * (_attention(s, n, total, serving) + indexer) + s.linear_layers * _linear(s, n) + s.layers * streams
    layers += s.dense_layers * dense + (s.layers - s.dense_layers) * experts
    return 2 * (layers + s.hidden * s.vocab)


def _attention(s: Sizes, n: int, total: int, serving: bool) -> int:
    """Multiplications of the attention of one layer, its indexer apart."""
    projections = n * (s.hidden * (s.q_lora + LATENT_WIDTH) + s.q_lora * s.heads * s.qk_nope + s.heads * s.v_head * s.hidden)
    seen = selected(total - n, n, s.index_topk + INDEX_KPOOL - 1) if serving else n * total
    expanded = (total * LATENT_WIDTH + seen) * s.heads * (s.qk_nope + s.v_head)
    as_they_are = n * s.heads * LATENT_WIDTH * (s.qk_nope + s.v_head) + seen * s.heads * 2 * LATENT_WIDTH
    return projections + (min(expanded, as_they_are) if serving else expanded)


def selected(history: int, tokens: int, most: int) -> int:
    """Rows that new tokens attend to in all: each to those up to its own, and to `most` of them at most."""
    all_of_them = min(max(most - history, 0), tokens)
    return all_of_them * history + all_of_them * (all_of_them + 1) // 2 + (tokens - all_of_them) * most


def _linear(s: Sizes, n: int) -> int:
    """Multiplications of one linear attention layer."""
    wide = s.linear_heads * s.linear_head_dim
    projections = n * (4 * s.hidden * wide + 2 * (s.hidden + wide) * s.linear_head_dim + s.hidden * s.linear_heads)
    if n == 1:  # one token goes without matrix products
        return projections
    chunks, c, e = -(-n // LINEAR_CHUNK), LINEAR_CHUNK, s.linear_head_dim
    return projections + 3 * chunks * (c * c * e + c * e * e) * s.linear_heads


@dataclass(frozen=True, slots=True)
class Bus:
    """What staging costs on a bus, by the library's own model: published figures, the least and the most that was measured."""

    name: str
    least: Costs
    most: Costs

    def seconds(self, copies: int, waits: int, launches: int, size: int) -> tuple[float, float]:
        """Copies, waits and launches, each times its cost, and bytes / bandwidth: with the least costs, and with the most."""
        asked = Counts(copies, waits, launches, moved=size, taken=0)
        return self.least.seconds(asked, 1), self.most.seconds(asked, 1)


PCIE_5 = Bus("PCIe 5", PCIE_5_LEAST, PCIE_5_MOST)
RATES = (100e12, 400e12)
"""Operations per second that a real step is shown at: not measured here, choose what your accelerator reaches."""


def share(staging: float, rest: float) -> float:
    """The part of a step that is staging."""
    return staging / (staging + rest)
