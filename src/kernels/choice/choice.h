// Which kernel table `--kernels auto` means on this machine, for a model whose weights are mostly
// of one format.
//
// One table runs a whole model: no model mixes them. What a processor is slow at is left out by
// another table instead (avx512_vnni has the products of bytes of avx512_bf16 without its pairs),
// which makes the best mixture for every machine met so far a table with a name: state_digest names
// it, `--kernels` forces it, the differential tests run it, and the arithmetic of a model has one
// name and not one for each slot. The choice is for each weight format all the same, since what a
// probe finds for bf16 need not hold for int4; that of the format which most products are of is
// taken for the model.
//
// In this order:
//   one vector table       it is taken
//   this machine's file    in the user's cache folder: what a probe found before
//   a known processor      what its entry in known.cpp says
//   a probe                of some seconds, whose result becomes that file
//   no file can be kept    the last table in the list, without a probe: one at each start could
//                          find now this table and now that, and workers that share states must
//                          choose alike
//
// Processes that start at once wait for the first one's probe, under a lock. A file is of one
// processor, set of tables and arithmetic revision; only refresh_kernels replaces a sound one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "kernels/choice/formats.h"
#include "kernels/choice/probe.h"
#include "kernels/choice/processor.h"

namespace banyan {

// Everything that a choice depends on; tests replace it.
struct ChoosingMachine {
  Processor processor;
  std::vector<std::string> tables;  // runnable tables, as available_kernels() lists them
  std::string cache_folder;         // "": none
  std::string today;                // "2026-11-23"
  // Probes the tables with these names. Called only if a probe is due.
  std::function<std::unique_ptr<KernelProbe>(const std::vector<std::string>& tables)> probe;
};

ChoosingMachine this_machine();

struct KernelChoices {
  TableNames tables;   // one for each of kGemmFormats
  TableNames reasons;  // "avx512_bf16 is 0.61 times as fast here (probe of 2026-11-23)"

  bool same_for_all() const;
};

// Probes if necessary, with a note on stderr if that is a terminal.
KernelChoices choose_kernels(const ChoosingMachine& machine);

// Probes even if a choice is known, and replaces this machine's file.
struct RefreshedChoices {
  KernelChoices choices;
  std::vector<std::string> tables;
  ProbedSpeeds speeds;  // empty if there is only one candidate
  std::string file;
};
Result<RefreshedChoices> refresh_kernels(const ChoosingMachine& machine);

// This machine's file; "" without a folder.
std::string choice_file(const ChoosingMachine& machine);

}  // namespace banyan
