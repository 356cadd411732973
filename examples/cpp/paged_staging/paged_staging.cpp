// GLM-5.3-Flash's caches, 11 layers of a latent and an indexer row a token, staged for one step: by row, by row with the
// synchronize hoisted, and by the emitted block loop. It exits with 0 if bytes and counts are what they must be.
//
//     kvstage emit per_block --lang cpp -o emitted
//     g++ -std=c++17 -O2 -pthread -Iemitted -o paged_staging paged_staging.cpp
//     ./paged_staging
#include <chrono>
#include <cstdio>
#include <string>

#include "block_loop.hpp"
#include "mock_queue.hpp"
#include "row_loop.hpp"
#include "thread_queue.hpp"

namespace {

constexpr std::int64_t kLayers = 11, kTokens = 8192, kNew = 40, kBlockSize = 32, kBlocks = 320;
constexpr std::int64_t kWidths[] = {512, 257};  // latent, indexer
int failures = 0;

void expect(bool met, const std::string& what) {
    if (!met) ++failures, std::printf("FAILED: %s\n", what.c_str());
}

double milliseconds_since(std::chrono::steady_clock::time_point begun) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
}

struct Leg {
    MockQueue queue;
    double milliseconds = 0;
    std::int64_t wrong = 0;  // elements

    template <class Staging>
    void run(Staging staging) {
        const auto begun = std::chrono::steady_clock::now();
        staging(queue);
        milliseconds += milliseconds_since(begun);
    }
    void compare(const std::vector<float>& found, const std::vector<float>& wanted) {
        for (std::size_t k = 0; k < wanted.size(); ++k) wrong += std::memcmp(&found[k], &wanted[k], 4) != 0;
    }
    void print(const char* name) const {
        std::printf("%-28s %8ld copies %8ld synchronizes %10.1f ms  %s\n", name, queue.copies, queue.synchronizes, milliseconds,
                    wrong ? "WRONG BYTES" : "all bytes right");
    }
};

Sequence sequence_of(std::int64_t cached_len) {
    Sequence sequence{{}, kBlocks, kBlockSize, cached_len};
    for (std::int64_t page = 0; page * kBlockSize < kTokens + kNew; ++page)
        sequence.blocks.push_back(static_cast<std::int32_t>((page * 7 + 3) % kBlocks));  // 7 and 320 have no common factor
    return sequence;
}

template <class Call>
void expect_refusal(const std::string& words, Call call) {
    try {
        call();
    } catch (const std::exception& refusal) {
        expect(std::string(refusal.what()).find(words) != std::string::npos, "refused as " + words + ", not as " + refusal.what());
        return;
    }
    expect(false, "refused: " + words);
}

void refusals() {
    std::vector<char> pages(kBlocks * kBlockSize * 4), stage(kBlockSize * 4);
    std::vector<float> out(64);
    const Cache cache{pages.data(), 1, Dtype::kF32}, fp8{pages.data(), 1, Dtype::kFp8};
    MockQueue queue;
    auto negative = sequence_of(64), beyond = sequence_of(64), fresh = sequence_of(0);
    negative.blocks[1] = -1;
    beyond.blocks.resize(1);
    fresh.blocks.clear();
    expect_refusal("page 1 has a negative block id", [&] { load_rows(queue, negative, cache, stage.data(), out.data()); });
    expect_refusal("page 1 lies beyond the block table", [&] { load_rows(queue, beyond, cache, stage.data(), out.data()); });
    expect_refusal("pages of fp8", [&] { load_rows(queue, sequence_of(64), fp8, stage.data(), out.data()); });
    const long before = queue.copies;
    expect(before > 0, "the row loop has copied rows by the time that it refuses a page");
    expect_refusal("block id -1 for page 1", [&] { load_blocks(queue, negative, cache, stage.data(), out.data()); });
    expect_refusal("page 1, beyond its block table", [&] { load_blocks(queue, beyond, cache, stage.data(), out.data()); });
    expect_refusal("pages of fp8", [&] { load_blocks(queue, sequence_of(64), fp8, stage.data(), out.data()); });
    load_rows(queue, fresh, cache, stage.data(), out.data());
    load_blocks(queue, fresh, cache, stage.data(), out.data());
    expect(queue.copies == before, "the block loop refuses before it copies, and a fresh sequence touches no page");
}

}  // namespace

int main() {
    double row_ms = 0, block_ms = 0;  // milliseconds of the step on a queue whose copies another thread performs
    Leg load, hoisted, load_by_block, store, store_by_block;
    const Sequence sequence = sequence_of(kTokens);
    for (std::int64_t number = 0; number < kLayers * 2; ++number) {
        const std::int64_t width = kWidths[number % 2];
        std::vector<char> pages(static_cast<std::size_t>(kBlocks * kBlockSize * width * 2)), other;
        const Cache cache{pages.data(), width, Dtype::kBf16};
        std::uint32_t state = static_cast<std::uint32_t>(number) + 1;
        for (auto& byte : pages) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
        std::vector<char> stage(static_cast<std::size_t>(kBlockSize * width * 2));
        std::vector<float> wanted(static_cast<std::size_t>(kTokens * width)), found(wanted.size());
        for (std::int64_t token = 0; token < kTokens; ++token)
            to_f32(pages.data() + row_offset(sequence, cache, token), wanted.data() + token * width, width, cache.dtype);

        load.run([&](MockQueue& queue) { load_rows(queue, sequence, cache, stage.data(), found.data()); });
        load.compare(found, wanted);
        hoisted.run([&](MockQueue& queue) { load_rows_hoisted(queue, sequence, cache, stage.data(), found.data()); });
        hoisted.compare(found, wanted);
        load_by_block.run([&](MockQueue& queue) { load_blocks(queue, sequence, cache, stage.data(), found.data()); });
        load_by_block.compare(found, wanted);

        {
            ThreadQueue queue;
            auto begun = std::chrono::steady_clock::now();
            load_rows(queue, sequence, cache, stage.data(), found.data());
            row_ms += milliseconds_since(begun);
            load.compare(found, wanted);
            begun = std::chrono::steady_clock::now();
            load_blocks(queue, sequence, cache, stage.data(), found.data());
            block_ms += milliseconds_since(begun);
            load_by_block.compare(found, wanted);
        }

        std::vector<float> rows(wanted.begin(), wanted.begin() + kNew * width);
        other = pages;
        const Cache by_block{other.data(), width, Dtype::kBf16};
        store.run([&](MockQueue& queue) { store_rows(queue, sequence, cache, stage.data(), rows.data(), kNew); });
        store_by_block.run([&](MockQueue& queue) { store_blocks(queue, sequence, by_block, stage.data(), rows.data(), kNew); });
        expect(pages == other, "both loops store the same bytes");
        std::vector<float> back(static_cast<std::size_t>(width));
        to_f32(pages.data() + row_offset(sequence, cache, kTokens + kNew - 1), back.data(), width, cache.dtype);
        std::vector<float> last(rows.end() - width, rows.end());
        for (auto& each : last) {  // as pages hold it
            char half[2];
            from_f32(&each, half, 1, Dtype::kBf16);
            to_f32(half, &each, 1, Dtype::kBf16);
        }
        store.compare(back, last);
    }
    load.print("load, row by row");
    hoisted.print("load, synchronize hoisted");
    load_by_block.print("load, emitted block loop");
    store.print("store, row by row");
    store_by_block.print("store, emitted block loop");
    std::printf("the step's load, copies on a thread: %.1f ms row by row, %.1f ms by block\n", row_ms, block_ms);

    expect(load.wrong == 0 && load_by_block.wrong == 0 && store.wrong == 0, "right bytes");
    expect(hoisted.wrong > 0, "wrong bytes without the wait");
    expect(load.queue.copies == 180224 && load.queue.synchronizes == 180224, "180,224 round trips by row");
    expect(load_by_block.queue.copies == 5632 && load_by_block.queue.synchronizes == 5632, "5,632 by block");
    expect(store.queue.synchronizes == 22 * kNew && store_by_block.queue.synchronizes == 22 * 2, "two pages of new rows");
    refusals();
    return failures != 0;
}
