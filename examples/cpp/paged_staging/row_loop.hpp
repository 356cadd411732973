// Staging row by row, as an engine begins with: one row of staging memory, one copy and one synchronize for every token.
#pragma once

#include "caches.hpp"

// Rows [0, cached_len) of a cache come to the host as f32.
template <class Queue>
void load_rows(Queue& queue, const Sequence& sequence, const Cache& cache, char* stage, float* out) {
    const auto bytes = static_cast<std::size_t>(row_bytes(cache));
    for (std::int64_t token = 0; token < sequence.cached_len; ++token) {
        queue.copy_async(stage, cache.pages + row_offset(sequence, cache, token), bytes);
        queue.synchronize();
        to_f32(stage, out + token * cache.width, cache.width, cache.dtype);
    }
}

// Rows [cached_len, cached_len + new_tokens) of a cache go to its pages.
template <class Queue>
void store_rows(Queue& queue, const Sequence& sequence, const Cache& cache, char* stage, const float* rows, std::int64_t new_tokens) {
    const auto bytes = static_cast<std::size_t>(row_bytes(cache));
    for (std::int64_t token = 0; token < new_tokens; ++token) {
        char* const page = cache.pages + row_offset(sequence, cache, sequence.cached_len + token);
        from_f32(rows + token * cache.width, stage, cache.width, cache.dtype);
        queue.copy_async(page, stage, bytes);
        queue.synchronize();
    }
}

// "The synchronize is slow": moved out of the loop, it lets each copy overwrite the row before the host has taken it.
template <class Queue>
void load_rows_hoisted(Queue& queue, const Sequence& sequence, const Cache& cache, char* stage, float* out) {
    const auto bytes = static_cast<std::size_t>(row_bytes(cache));
    for (std::int64_t token = 0; token < sequence.cached_len; ++token) {
        queue.copy_async(stage, cache.pages + row_offset(sequence, cache, token), bytes);
        to_f32(stage, out + token * cache.width, cache.width, cache.dtype);
    }
    queue.synchronize();
}
