// The C interface of the host build. No C++ exception crosses it: a broken invariant becomes status 1 and a
// message.
#include "host.hpp"

using prestage::u32;
using prestage::u64;

extern "C" {
void prestage_family_field();
void prestage_family_curve();
void prestage_family_ntt();
void prestage_family_msm_sort();
void prestage_family_msm_lists();
void prestage_family_msm_g1();
void prestage_family_msm_g2();
void prestage_family_fixed_base();

// A use of every family's translation unit, so that a linker keeps them all.
static void link_families() {
    prestage_family_field();
    prestage_family_curve();
    prestage_family_ntt();
    prestage_family_msm_sort();
    prestage_family_msm_lists();
    prestage_family_msm_g1();
    prestage_family_msm_g2();
    prestage_family_fixed_base();
}

// Runs `name` over the whole grid. Returns 0, or 1 with a message of at most `capacity` bytes, NUL included.
int prestage_host_launch(const char* name, const prestage::Launch* launch, void* const* args, u32 arguments,
                         char* message, u64 capacity) noexcept {
    try {
        link_families();
        const prestage::Entry* e = prestage::Entry::head();
        while (e != nullptr && std::strcmp(e->name, name) != 0) e = e->next;
        if (e == nullptr) throw std::invalid_argument("no such kernel");
        if (e->arguments != arguments)
            throw std::invalid_argument("the kernel takes " + std::to_string(e->arguments) + " arguments");
        if (launch->block == 0 || launch->block > e->threads)
            throw std::invalid_argument("the kernel takes 1 to " + std::to_string(e->threads) + " threads");
        prestage::BlockState state;
        state.random = launch->seed;
        state.order.resize(launch->block);
        for (u32 i = 0; i < launch->block; i++)
            state.order[i] = launch->order == prestage::Order::Backwards ? launch->block - 1 - i : i;
        for (u32 y = 0; y < launch->grid_y; y++)
            for (u32 x = 0; x < launch->grid_x; x++) {
                state.phase = 1;
                state.bytes.assign(launch->shared_bytes, 0xa5);
                state.accesses.assign((launch->shared_bytes + 3) / 4, prestage::Access{});
                e->invoke(*e, prestage::Block{launch, x, y, &state}, args);
            }
        return 0;
    } catch (const std::exception& e) {
        std::snprintf(message, capacity, "%s", e.what());
    } catch (...) {
        std::snprintf(message, capacity, "unknown exception");
    }
    return 1;
}

// The name of kernel number `i`, or null past the last.
const char* prestage_host_kernel(u32 i) noexcept {
    link_families();
    const prestage::Entry* e = prestage::Entry::head();
    while (e != nullptr && i > 0) {
        e = e->next;
        i--;
    }
    return e == nullptr ? nullptr : e->name;
}
}
