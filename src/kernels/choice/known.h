// Processors that were measured: which kernel table is the fastest there.
#pragma once

#include <span>
#include <string_view>

#include "kernels/choice/processor.h"

namespace banyan {

struct KnownProcessor {
  std::string_view name;
  std::string_view vendor;
  int family, model_first, model_last;
  // The last table that it runs, which stands for its flags: virtual machines hide instructions.
  std::string_view runs;
  std::string_view kernels;  // the fastest table, for weights of every format
  std::string_view figures;  // that decided, of one thread
};

std::span<const KnownProcessor> known_processors();

// Null: a processor that nobody has measured. `runs` is the last table that it runs.
const KnownProcessor* find_known(const Processor& processor, std::string_view runs);

}  // namespace banyan
