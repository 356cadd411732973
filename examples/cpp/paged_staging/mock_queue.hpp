// An in-order queue without a device. A copy may happen at any time until a synchronize: here as late as that.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

class MockQueue {
public:
    void copy_async(void* target, const void* source, std::size_t bytes) {
        ++copies;
        pending_.push_back({target, source, bytes});
    }
    void synchronize() {
        ++synchronizes;
        for (const auto& copy : pending_) std::memcpy(copy.target, copy.source, copy.bytes);
        pending_.clear();
    }

    long copies = 0, synchronizes = 0;

private:
    struct Copy {
        void* target;
        const void* source;
        std::size_t bytes;
    };
    std::vector<Copy> pending_;
};
