// The fastest kernel table on processors that were measured.
#pragma once

#include <span>
#include <string_view>

#include "kernels/choice/processor.h"

namespace banyan {

struct KnownProcessor {
  std::string_view name;
  std::string_view vendor;
  int family, model_first, model_last;
  // The last table that it runs. This stands for the processor's flags, since virtual machines hide
  // instructions.
  std::string_view runs;
  std::string_view kernels;  // the fastest table, for weights of every format
  std::string_view figures;  // the deciding figures, of one thread
};

std::span<const KnownProcessor> known_processors();

// Null: the processor was not measured. `runs` is the last table that it runs.
const KnownProcessor* find_known(const Processor& processor, std::string_view runs);

}  // namespace banyan
