// The host side of simt.cuh: a block as loops, shared memory that reports races, and a table of kernels that
// are launched by name with the argument convention of `cuLaunchKernel`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace prestage {

using u32 = unsigned int;
using u64 = unsigned long long;

[[noreturn]] inline void fail(const char* what, const char* file, int line) {
    throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

enum class Order : u32 { Forwards = 0, Backwards = 1, Shuffled = 2 };

// Grid and block sizes, dynamic shared memory in bytes, order in which a phase visits the threads.
struct Launch {
    u32 grid_x, grid_y, block, shared_bytes;
    Order order;
    u64 seed;
};

// Stands for all threads that add atomically.
constexpr u32 ADDERS = 0xffffffff;

// What shared memory remembers of an element, to find two threads that meet between two barriers.
struct Access {
    u32 write_phase = 0, writer = 0, read_phase = 0, reader = 0;
    bool written = false, many_readers = false;
};

struct BlockState {
    u32 phase = 1;
    u64 random = 0;
    std::vector<u32> order;
    std::vector<unsigned char> bytes;
    std::vector<Access> accesses; // one per 4 bytes of shared memory
    u64 next_random() {
        random += 0x9e3779b97f4a7c15ull;
        u64 z = random;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
};

template <class T> struct Shared {
    BlockState* state;
    u32 offset, count;
    T get(u32 thread, u32 i) const {
        touch(thread, i, false);
        T v;
        std::memcpy(&v, state->bytes.data() + offset + std::size_t(i) * sizeof(T), sizeof(T));
        return v;
    }
    void set(u32 thread, u32 i, const T& v) const {
        touch(thread, i, true);
        std::memcpy(state->bytes.data() + offset + std::size_t(i) * sizeof(T), &v, sizeof(T));
    }
    T add(u32, u32 i, T v) const {
        const T before = get(ADDERS, i);
        set(ADDERS, i, before + v);
        return before;
    }

private:
    void touch(u32 thread, u32 i, bool write) const {
        if (i >= count) fail("shared memory index within the allocation", __FILE__, __LINE__);
        const std::size_t first = (offset + std::size_t(i) * sizeof(T)) / 4;
        for (std::size_t k = first; k < first + sizeof(T) / 4; k++) {
            Access& a = state->accesses[k];
            if (a.write_phase == state->phase && a.writer != thread)
                fail("no barrier between a write and another thread's access", __FILE__, __LINE__);
            if (write) {
                if (a.read_phase == state->phase && (a.many_readers || a.reader != thread))
                    fail("no barrier between a read and another thread's write", __FILE__, __LINE__);
                a.write_phase = state->phase;
                a.writer = thread;
                a.written = true;
            } else {
                if (!a.written) fail("shared memory written before it is read", __FILE__, __LINE__);
                a.many_readers = a.read_phase == state->phase && (a.many_readers || a.reader != thread);
                a.read_phase = state->phase;
                a.reader = thread;
            }
        }
    }
};

struct Block {
    const Launch* launch;
    u32 x, y;
    BlockState* state;

    template <class F> void each(F f) const {
        if (launch->order == Order::Shuffled)
            for (u32 i = launch->block; i > 1; i--)
                std::swap(state->order[i - 1], state->order[state->next_random() % i]);
        for (u32 i = 0; i < launch->block; i++) f(state->order[i]);
    }
    void sync() const { state->phase++; }
    u32 index() const { return x; }
    u32 row() const { return y; }
    u32 dim() const { return launch->block; }
    u32 grid() const { return launch->grid_x; }
    template <class T> Shared<T> shared(u32 offset, u32 count) const {
        static_assert(sizeof(T) % 4 == 0, "shared memory is tracked by the word");
        if (offset % 4 != 0 || offset + u64(count) * sizeof(T) > launch->shared_bytes)
            fail("the launch gives the shared memory that the kernel uses", __FILE__, __LINE__);
        return {state, offset, count};
    }
};

template <class T> struct PerThread {
    std::vector<T> values;
    explicit PerThread(const Block& blk) : values(blk.dim()) {}
    T& operator[](u32 t) { return values[t]; }
};

// A kernel in the table; entries register themselves when the program starts.
struct Entry {
    const char* name;
    u32 threads, arguments;
    void (*invoke)(const Entry&, const Block&, void* const*);
    void (*body)();
    const Entry* next;
    static const Entry*& head() {
        static const Entry* first = nullptr;
        return first;
    }
    template <class... A>
    Entry(const char* name, u32 threads, void (*f)(const Block&, A...))
        : name(name), threads(threads), arguments(sizeof...(A)), body(reinterpret_cast<void (*)()>(f)), next(head()) {
        invoke = [](const Entry& e, const Block& blk, void* const* args) {
            call(reinterpret_cast<void (*)(const Block&, A...)>(e.body), blk, args, std::index_sequence_for<A...>{});
        };
        head() = this;
    }

private:
    template <class... A, std::size_t... I>
    static void call(void (*f)(const Block&, A...), const Block& blk, void* const* args, std::index_sequence<I...>) {
        (void)args;
        f(blk, *static_cast<std::remove_reference_t<A>*>(args[I])...);
    }
};

} // namespace prestage
