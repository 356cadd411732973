// An in-order queue whose copies a thread performs: what a synchronize costs where somebody else does the work.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

class ThreadQueue {
public:
    ThreadQueue() : worker_([this] { work(); }) {}
    ~ThreadQueue() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
        worker_.join();
    }
    ThreadQueue(const ThreadQueue&) = delete;
    ThreadQueue& operator=(const ThreadQueue&) = delete;

    void copy_async(void* target, const void* source, std::size_t bytes) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            pending_.push_back({target, source, bytes});
        }
        changed_.notify_all();
    }
    void synchronize() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return pending_.empty(); });
    }

private:
    struct Copy {
        void* target;
        const void* source;
        std::size_t bytes;
    };

    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            changed_.wait(lock, [this] { return closed_ || !pending_.empty(); });
            if (pending_.empty()) return;
            const Copy copy = pending_.front();  // it stays there until it has ended
            lock.unlock();
            std::memcpy(copy.target, copy.source, copy.bytes);
            lock.lock();
            pending_.pop_front();
            if (pending_.empty()) changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Copy> pending_;
    bool closed_ = false;
    std::thread worker_;
};
