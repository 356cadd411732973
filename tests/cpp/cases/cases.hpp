// Staging loops, each right and wrong: the two differ in what `right` decides. A case returns how many bytes are not as they must be.
#pragma once
#include <cuda_runtime.h>

#include <vector>

struct Case {
    const char* name;
    int (*run)(bool right);
    static std::vector<Case>& all();
};
struct Registered {
    Registered(const char* name, int (*run)(bool)) { Case::all().push_back({name, run}); }
};
#define CASE(name)                                    \
    static int name(bool right);                      \
    static const Registered registered_##name(#name, name); \
    static int name(bool right)

constexpr int kRows = 8, kRow = 64;
constexpr size_t kBytes = size_t(kRows) * kRow;

inline char value_of(int row) { return char(row + 1); }
inline void fill_row(char* row, int number) {
    for (int i = 0; i < kRow; ++i) row[i] = value_of(number);
}
// How many bytes of rows are not those that row r must hold: value_of(r).
inline int wrong(const char* rows, int count = kRows) {
    int found = 0;
    for (int i = 0; i < count * kRow; ++i) found += rows[i] != value_of(i / kRow);
    return found;
}

inline cudaStream_t new_stream() {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
}
inline cudaEvent_t new_event() {
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    return event;
}

// Rows on the device. `filled`: row r holds value_of(r); else zeros.
struct Pool {
    char* rows;
    explicit Pool(bool filled = true) {
        cudaMalloc(&rows, kBytes);
        std::vector<char> host(kBytes);
        for (int r = 0; filled && r < kRows; ++r) fill_row(&host[size_t(r) * kRow], r);
        cudaMemcpy(rows, host.data(), kBytes, cudaMemcpyHostToDevice);
        cudaDeviceSynchronize();
    }
    ~Pool() {
        cudaDeviceSynchronize();
        cudaFree(rows);
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    char* row(int r) const { return rows + r * kRow; }
    int wrong() const {
        std::vector<char> host(kBytes);
        cudaDeviceSynchronize();
        cudaMemcpy(host.data(), rows, kBytes, cudaMemcpyDeviceToHost);
        return ::wrong(host.data());
    }
};

// Pinned memory for a number of rows.
struct Pinned {
    char* rows;
    explicit Pinned(int count = kRows) { cudaMallocHost(&rows, size_t(count) * kRow); }
    ~Pinned() {
        cudaDeviceSynchronize();
        cudaFreeHost(rows);
    }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

    char* row(int r) const { return rows + r * kRow; }
};

// A kernel that copies a row: what compute reads and writes.
inline void copy_row(char* to, const char* from) {
    for (int i = 0; i < kRow; ++i) to[i] = from[i];
}
