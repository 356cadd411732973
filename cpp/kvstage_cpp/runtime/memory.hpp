// Which memory is whose: what was allocated or registered, and of which kind.
#pragma once
#include <map>

#include "device.hpp"

namespace {

struct Block {
    size_t bytes;
    cudaMemoryType type;
    unsigned flags;
    bool registered;  // the program's own memory, which is not ours to free
};

class Memory {
   public:
    static constexpr size_t kAlignment = 256;
    static constexpr int kFresh = 0xA5;  // what memory holds before anything was written

    void add(void* p, const Block& block) { blocks_[static_cast<const char*>(p)] = block; }
    bool remove(void* p) { return blocks_.erase(static_cast<const char*>(p)) != 0; }

    // The block that an address lies in, and where that begins; null in memory that CUDA knows nothing of.
    const Block* find(const void* p, const char** begin = nullptr) const {
        auto at = blocks_.upper_bound(static_cast<const char*>(p));
        if (at == blocks_.begin()) return nullptr;
        --at;
        if (static_cast<const char*>(p) >= at->first + at->second.bytes) return nullptr;
        if (begin) *begin = at->first;
        return &at->second;
    }
    cudaMemoryType type(const void* p) const {
        const Block* block = find(p);
        return block ? block->type : cudaMemoryTypeUnregistered;
    }
    // Whether all of a range lies in the block that it begins in.
    bool holds(const Range& range) const {
        const char* begin;
        const Block* block = find(range.begin, &begin);
        return !block || range.begin + range.bytes <= begin + block->bytes;
    }

   private:
    std::map<const char*, Block> blocks_;
};

Memory& memory() {
    static auto* it = new Memory;
    return *it;
}

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t failed(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
    return error;
}

const char* words(cudaMemoryType type) {
    switch (type) {
        case cudaMemoryTypeUnregistered: return "pageable";
        case cudaMemoryTypeHost: return "pinned";
        default: return "device";
    }
}

// Waits for everything, as some calls do on today's devices, and none promises: with KVSTAGE_IMPLICIT_SYNC=1 only.
void sync_implicitly(const Call& call) {
    if (!device().implicit_sync) return;
    for (size_t i = 0; i < device().streams.size(); ++i) call.wait({device().streams[i], device().streams[i]->issued, nullptr});
}

cudaError_t allocate(const Call& call, void** p, size_t bytes, cudaMemoryType type, unsigned flags = 0) {
    if (!p) return failed(cudaErrorInvalidValue);
    sync_implicitly(call);
    *p = nullptr;
    if (!bytes) return cudaSuccess;
    Calling from(call.caller);
    void* found = nullptr;
    if (bytes > PTRDIFF_MAX || posix_memalign(&found, Memory::kAlignment, bytes)) return failed(cudaErrorMemoryAllocation);
    memset(found, Memory::kFresh, bytes);
    memory().add(found, {bytes, type, flags, false});
    device().log.line("memory\t%p\t%zu\t%s", found, bytes, words(type));
    *p = found;
    return cudaSuccess;
}

// Tells of operations that may still be under way on memory that is let go of. The schedule has held them; a device may.
void find_users(const Call& call, const Range& range) {
    for (auto* stream : device().streams)
        for (auto* operation : stream->queue) {
            if (!operation->work || !operation->work->touches(range)) continue;
            Site here;
            here.take(call.caller);
            device().log.finding("freed", "memory is freed that an operation may still use: a wait is missing", operation->site, here);
            return;
        }
}

// Takes a block out of the books. The caller then frees it where ThreadSanitizer sees that.
cudaError_t forget(const Call& call, void* p, bool registered, cudaMemoryType type, cudaError_t otherwise) {
    const char* begin;
    const Block* block = memory().find(p, &begin);
    const bool device_side = type != cudaMemoryTypeHost;
    if (!block || begin != p || block->registered != registered || (block->type != cudaMemoryTypeHost) != device_side)
        return failed(otherwise);
    sync_implicitly(call);
    find_users(call, {begin, block->bytes});
    memory().remove(p);
    device().log.line("free\t%p", p);
    return cudaSuccess;
}

}  // namespace
