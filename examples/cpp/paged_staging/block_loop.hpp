// The same, with the emitted `per_block` in place of the loop: a copy and a synchronize for every page.
#pragma once

#include "caches.hpp"
#include "per_block.hpp"
#include "queue_backend.hpp"

inline kvstage::PagedRows rows_of(const Sequence& sequence, std::int64_t start, std::int64_t stop) {
    return {sequence.blocks.data(), static_cast<kvstage::Index>(sequence.blocks.size()), sequence.num_blocks, sequence.block_size, start, stop};
}

inline kvstage::Buffer pool_of(const Sequence& sequence, const Cache& cache) {
    return {cache.pages, sequence.num_blocks, sequence.block_size, row_bytes(cache)};
}

// `stage` has room for a page.
template <class Queue>
void load_blocks(Queue& queue, const Sequence& sequence, const Cache& cache, char* stage, float* out) {
    const auto take = [&cache](const kvstage::Rows& staged, const kvstage::Rows& rows) {
        to_f32(staged.data, reinterpret_cast<float*>(rows.data), staged.count * cache.width, cache.dtype);
    };
    kvstage::QueueBackend backend(queue, take);
    per_block_read(backend, rows_of(sequence, 0, sequence.cached_len), {}, pool_of(sequence, cache),
                   {stage, 1, sequence.block_size, row_bytes(cache)}, {out, 1, sequence.cached_len, cache.width * 4});
}

template <class Queue>
void store_blocks(Queue& queue, const Sequence& sequence, const Cache& cache, char* stage, float* rows, std::int64_t new_tokens) {
    const auto fill = [&cache](const kvstage::Rows& source, const kvstage::Rows& staged) {
        from_f32(reinterpret_cast<const float*>(source.data), staged.data, staged.count * cache.width, cache.dtype);
    };
    kvstage::QueueBackend backend(queue, fill);
    per_block_write(backend, rows_of(sequence, sequence.cached_len, sequence.cached_len + new_tokens), {}, pool_of(sequence, cache),
                    {stage, 1, sequence.block_size, row_bytes(cache)}, {rows, 1, new_tokens, cache.width * 4});
}
