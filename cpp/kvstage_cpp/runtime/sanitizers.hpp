// What ThreadSanitizer and AddressSanitizer are told. Their functions are there in programs that are built with them, and null in others.
//
// Each stream is a fiber of ThreadSanitizer's, a thread that only it knows of. What a stream does is done on its fiber, in whatever thread
// of the program; what CUDA orders is an edge, a release store and an acquire load; nothing else orders a fiber and a thread.
#pragma once
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>

#define KVSTAGE_WEAK __attribute__((weak))
extern "C" {
void* __tsan_get_current_fiber(void) KVSTAGE_WEAK;
void* __tsan_create_fiber(unsigned flags) KVSTAGE_WEAK;
void __tsan_destroy_fiber(void* fiber) KVSTAGE_WEAK;
void __tsan_switch_to_fiber(void* fiber, unsigned flags) KVSTAGE_WEAK;
void __tsan_set_fiber_name(void* fiber, const char* name) KVSTAGE_WEAK;
void __tsan_func_entry(void* pc) KVSTAGE_WEAK;
void __tsan_func_exit(void) KVSTAGE_WEAK;
void __tsan_ignore_thread_begin(void) KVSTAGE_WEAK;
void __tsan_ignore_thread_end(void) KVSTAGE_WEAK;
int __tsan_atomic32_load(const volatile int* word, int order) KVSTAGE_WEAK;
void __tsan_atomic32_store(volatile int* word, int value, int order) KVSTAGE_WEAK;
void __asan_init(void) KVSTAGE_WEAK;
}

namespace {

bool under_tsan() { return __tsan_create_fiber != nullptr; }
bool under_asan() { return __asan_init != nullptr; }

// A moment that others may come after.
class Edge {
   public:
    void release() {
        if (under_tsan()) __tsan_atomic32_store(&word_, 1, __ATOMIC_RELEASE);
    }
    void acquire() const {
        if (under_tsan()) __tsan_atomic32_load(&word_, __ATOMIC_ACQUIRE);
    }

   private:
    volatile int word_ = 0;
};

// Where the program called the API: its stack, innermost frame first, without the runtime's own.
struct Site {
    static constexpr int kMost = 16, kOwn = 8;
    void* frames[kMost] = {};
    int depth = 0;

    // `caller` is the address that the API function returns to.
    void take(void* caller) {
        void* all[kMost + kOwn];
        const int found = backtrace(all, kMost + kOwn);
        int first = 0;
        while (first < found && all[first] != caller) ++first;
        depth = 0;
        if (first == found) frames[depth++] = caller;
        for (int i = first; i < found && depth < kMost; ++i) frames[depth++] = all[i];
    }
};

// A stack for code of the program's that runs on a fiber: on the stack of whichever thread, its variables would seem to be shared.
class Stack {
   public:
    static constexpr size_t kBytes = 1 << 20, kGuard = 4096;
    Stack() = default;
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;
    ~Stack() { end(); }
    void end() {
        if (bytes_) munmap(bytes_, kBytes);
        bytes_ = nullptr;
    }

    template <class F>
    void run(void* fiber, F& body) {
        if (!bytes_) {
            bytes_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
            mprotect(bytes_, kGuard, PROT_NONE);
        }
        Jump<F> jump{body, {}, {}, __tsan_get_current_fiber()};
        getcontext(&jump.there);
        jump.there.uc_stack.ss_sp = bytes_;
        jump.there.uc_stack.ss_size = kBytes;
        jump.there.uc_link = nullptr;
        const auto address = reinterpret_cast<uintptr_t>(&jump);
        makecontext(&jump.there, reinterpret_cast<void (*)()>(&landed<F>), 2, static_cast<unsigned>(address >> 32),
                    static_cast<unsigned>(address));
        __tsan_switch_to_fiber(fiber, 1);
        swapcontext(&jump.here, &jump.there);
    }

   private:
    template <class F>
    struct Jump {
        F& body;
        ucontext_t here, there;
        void* back;
    };
    template <class F>
    static void landed(unsigned high, unsigned low) {
        auto& jump = *reinterpret_cast<Jump<F>*>(uintptr_t{high} << 32 | low);
        jump.body();
        __tsan_switch_to_fiber(jump.back, 1);
        setcontext(&jump.here);
    }
    void* bytes_ = nullptr;
};

class Fiber {
   public:
    explicit Fiber(const char* name) {
        if (!under_tsan()) return;
        fiber_ = __tsan_create_fiber(0);
        __tsan_set_fiber_name(fiber_, name);
    }
    ~Fiber() { end(); }
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Nothing runs on it from here on. ThreadSanitizer has room for some thousands.
    void end() {
        if (fiber_) __tsan_destroy_fiber(fiber_);
        fiber_ = nullptr;
        stack_.end();
    }

    void rename(const char* name) {
        if (fiber_) __tsan_set_fiber_name(fiber_, name);
    }

    // Runs `body` on the fiber, as if it were called from `site`. The program's own code needs `own_stack`.
    template <class F>
    void run(const Site& site, bool own_stack, F body) {
        if (!fiber_) return body();
        auto as_called = [&] {
            for (int i = site.depth; i-- > 0;) __tsan_func_entry(site.frames[i]);
            body();
            for (int i = 0; i < site.depth; ++i) __tsan_func_exit();
        };
        if (own_stack) return stack_.run(fiber_, as_called);
        void* back = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(fiber_, 1);
        as_called();
        __tsan_switch_to_fiber(back, 1);
    }

   private:
    void* fiber_ = nullptr;
    Stack stack_;
};

// What follows is done where the program called, whose functions are on ThreadSanitizer's stack, and not the runtime's.
struct Calling {
    explicit Calling(void* caller) {
        if (__tsan_func_entry) __tsan_func_entry(caller);
    }
    ~Calling() {
        if (__tsan_func_exit) __tsan_func_exit();
    }
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;
};

// ThreadSanitizer does not see what the runtime does for itself: its allocations would be blamed on the program's threads.
struct Unseen {
    Unseen() {
        if (__tsan_ignore_thread_begin) __tsan_ignore_thread_begin();
    }
    ~Unseen() {
        if (__tsan_ignore_thread_end) __tsan_ignore_thread_end();
    }
    Unseen(const Unseen&) = delete;
    Unseen& operator=(const Unseen&) = delete;
};

}  // namespace
