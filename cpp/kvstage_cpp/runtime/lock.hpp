// The runtime's one lock, the clock, and what the environment says.
#pragma once
#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

double seconds_now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}
double number_in(const char* variable, double otherwise) {
    const char* text = getenv(variable);
    return text && *text ? atof(text) : otherwise;
}
bool switched_on(const char* variable) {
    const char* text = getenv(variable);
    return text && !strcmp(text, "1");
}

// A lock that ThreadSanitizer does not see: it would put threads of the program in order that CUDA does not.
class Lock {
   public:
    void take() {
        for (int tries = 0; held_.test_and_set(std::memory_order_acquire); ++tries) pause(tries);
    }
    void give() { held_.clear(std::memory_order_release); }
    static void pause(int tries) {
        constexpr timespec nap{0, 50'000};
        tries < 100 ? static_cast<void>(sched_yield()) : static_cast<void>(nanosleep(&nap, nullptr));
    }

   private:
    std::atomic_flag held_ = ATOMIC_FLAG_INIT;
};

}  // namespace
