// A file with the results of a probe of this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "kernels/choice/probe.h"
#include "kernels/choice/processor.h"

namespace banyan {

struct ProbedChoice {
  std::string date;  // "2026-11-23"
  ProbedSpeeds speeds;
};

// What the file must match: the processor, the tables that it runs and the arithmetic revision.
std::string describe_machine_of(const Processor& processor, const std::vector<std::string>& tables);

// Nothing unless the file exists, is complete, and matches.
std::optional<ProbedChoice> read_choice(const std::string& path, const std::string& machine,
                                        const std::vector<std::string>& tables);
Status write_choice(const std::string& path, const std::string& machine,
                    const std::vector<std::string>& tables, const ProbedChoice& choice);

// Held by one process at a time; the system releases it when the process ends.
class ChoiceLock {
 public:
  // Creates the folder and the file. Waits for other processes as long as a probe may take.
  static Result<ChoiceLock> take(const std::string& path);
  ChoiceLock(ChoiceLock&& other) noexcept;
  ChoiceLock& operator=(ChoiceLock&&) = delete;
  ~ChoiceLock();

 private:
  explicit ChoiceLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace banyan
