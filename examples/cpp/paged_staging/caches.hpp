// The caches of a model with paged attention: for each layer a latent row and an indexer row a token, in pages of the device.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

enum class Dtype { kF32, kBf16, kFp8 };

struct Cache {
    char* pages;  // device memory: [num_blocks, block_size, width]
    std::int64_t width;
    Dtype dtype;
};

// Rows of one sequence: page k of it is block blocks[k] of every cache.
struct Sequence {
    std::vector<std::int32_t> blocks;
    std::int64_t num_blocks, block_size, cached_len;
};

inline std::int64_t element_bytes(Dtype dtype) {
    if (dtype == Dtype::kFp8) throw std::runtime_error("paged staging: pages of fp8 are not supported");
    return dtype == Dtype::kF32 ? 4 : 2;
}

inline std::int64_t row_bytes(const Cache& cache) { return cache.width * element_bytes(cache.dtype); }

// Byte offset of the row of one token. Refuses by name what is no page.
inline std::int64_t row_offset(const Sequence& sequence, const Cache& cache, std::int64_t position) {
    const std::int64_t page = position / sequence.block_size;
    if (page >= static_cast<std::int64_t>(sequence.blocks.size()))
        throw std::runtime_error("paged staging: page " + std::to_string(page) + " lies beyond the block table");
    const std::int64_t block = sequence.blocks[static_cast<std::size_t>(page)];
    if (block < 0) throw std::runtime_error("paged staging: page " + std::to_string(page) + " has a negative block id");
    return (block * sequence.block_size + position % sequence.block_size) * row_bytes(cache);
}

// The host's rows are f32, whatever the pages are.
inline void to_f32(const char* source, float* target, std::int64_t elements, Dtype dtype) {
    if (dtype == Dtype::kF32) {
        std::memcpy(target, source, static_cast<std::size_t>(elements) * 4);
        return;
    }
    for (std::int64_t k = 0; k < elements; ++k) {
        std::uint16_t half;
        std::memcpy(&half, source + 2 * k, 2);
        const std::uint32_t whole = static_cast<std::uint32_t>(half) << 16;
        std::memcpy(target + k, &whole, 4);
    }
}

inline void from_f32(const float* source, char* target, std::int64_t elements, Dtype dtype) {
    if (dtype == Dtype::kF32) {
        std::memcpy(target, source, static_cast<std::size_t>(elements) * 4);
        return;
    }
    for (std::int64_t k = 0; k < elements; ++k) {
        std::uint32_t whole;
        std::memcpy(&whole, source + k, 4);
        const auto half = static_cast<std::uint16_t>((whole + 0x7fff + ((whole >> 16) & 1)) >> 16);  // to the nearest, ties to even
        std::memcpy(target + 2 * k, &half, 2);
    }
}
