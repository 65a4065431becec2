// Selects among the kernel tables that this build has and this processor can run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "kernels/kernel_table.h"
#include "kernels/limits.h"

namespace banyan {

// `name` is "auto" (the last one that runs here, even if it is not the fastest: choice/choice.h
// chooses for a model), "portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16" or "amx"; or
// "fenced" and "cuda_emulated", for debugging (fenced/fenced.h); or "cuda", for a GPU
// (cuda/cuda.h). An unknown name, a table that cannot run here, and one that this version lacks are
// errors that list the valid names. The table lives as long as the program.
Result<const KernelTable*> select_kernels(std::string_view name);

// The names that select_kernels accepts on this machine, in ascending order of required
// instructions, without "auto" and tables for debugging.
std::vector<std::string> available_kernels();

// The last table that this processor could run but this program lacks, since it was compiled for
// another machine alone; "" if none is. And what to say of it.
std::string_view kernels_left_out();
std::string left_out_message(std::string_view kernels);

// The limit probes of a table from select_kernels.
const LimitProbes& limit_probes(const KernelTable& table);

// A table of kernels that do nothing, with the packed sizes of `like`. A forward pass over it makes
// the same allocations as a real one, which determines the size of the step arena.
KernelTable measuring_kernels(const KernelTable& like);

}  // namespace banyan
