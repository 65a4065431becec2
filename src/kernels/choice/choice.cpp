#include "kernels/choice/choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/os/status_line.h"
#include "kernels/choice/choice_file.h"
#include "kernels/choice/known.h"
#include "kernels/select.h"

namespace banyan {
namespace {

constexpr double kProbeSeconds = 4.5;

// The candidates: vector kernels beat the portable ones wherever they run.
std::vector<std::string> candidates(const ChoosingMachine& machine) {
  std::vector<std::string> tables = machine.tables;
  if (tables.size() > 1) std::erase(tables, "portable");
  return tables;
}

std::string machine_of(const ChoosingMachine& machine) {
  return describe_machine_of(machine.processor, machine.tables);
}

KernelChoices all_formats(const std::string& table, const std::string& reason) {
  KernelChoices choices;
  choices.tables.fill(table);
  choices.reasons.fill(reason);
  return choices;
}

KernelChoices by_probe(const ProbedChoice& probed, const std::vector<std::string>& tables) {
  KernelChoices choices;
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    const TableSpeeds& speeds = probed.speeds[f];
    size_t chosen = fastest_table(speeds);
    choices.tables[f] = tables[chosen];
    choices.reasons[f] =
        chosen + 1 == tables.size()
            ? fmt::format("the fastest here (probe of {})", probed.date)
            : fmt::format("{} reaches {:.2f} of its speed here (probe of {})", tables.back(),
                          speeds.back() / speeds[chosen], probed.date);
  }
  return choices;
}

ProbedChoice measure(const ChoosingMachine& machine, const std::vector<std::string>& tables) {
  StatusLine line;
  line.show(fmt::format("measuring kernels for {:.0f} s, once on this machine: {}", kProbeSeconds,
                        fmt::join(tables, ", ")));
  std::unique_ptr<KernelProbe> probe = machine.probe(tables);
  return {.date = machine.today, .speeds = probe_kernels(*probe, tables.size(), kProbeSeconds)};
}

struct Probed {
  ProbedChoice choice;
  Status kept;  // whether the file was written
};

// Call with the lock held: another process may have written the file meanwhile; else probe.
Result<Probed> probe_once(const ChoosingMachine& machine, const std::vector<std::string>& tables,
                          bool refresh) {
  std::string path = choice_file(machine);
  if (path.empty()) return io_error("neither XDG_CACHE_HOME nor HOME names a folder");
  ChoiceLock lock = TRY(ChoiceLock::take(path + ".lock"));
  if (!refresh) {
    if (auto known = read_choice(path, machine_of(machine), tables)) {
      return Probed{*std::move(known), {}};
    }
  }
  Probed probed{.choice = measure(machine, tables)};
  probed.kept = write_choice(path, machine_of(machine), tables, probed.choice);
  return probed;
}

std::string date_of_today() {
  std::time_t now = std::time(nullptr);
  std::tm day = {};
  ::gmtime_r(&now, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

}  // namespace

bool KernelChoices::same_for_all() const {
  return std::ranges::all_of(tables, [&](const std::string& table) { return table == tables[0]; });
}

ChoosingMachine this_machine() {
  return {.processor = this_processor(),
          .tables = available_kernels(),
          .cache_folder = user_cache_folder(),
          .today = date_of_today(),
          .probe = [](const std::vector<std::string>& names) {
            std::vector<const KernelTable*> tables;
            for (const std::string& name : names) tables.push_back(*select_kernels(name));
            return real_probe(tables);
          }};
}

std::string choice_file(const ChoosingMachine& machine) {
  if (machine.cache_folder.empty()) return "";
  return machine.cache_folder + "/kernels/" + Hasher().text(machine_of(machine)).finish().hex() +
         ".json";
}

KernelChoices choose_kernels(const ChoosingMachine& machine) {
  std::vector<std::string> tables = candidates(machine);
  if (tables.size() == 1) {
    return all_formats(tables[0], tables[0] == "portable"
                                      ? "this processor runs no others"
                                      : "the only vector kernels that this processor runs");
  }
  if (std::string path = choice_file(machine); !path.empty()) {
    if (auto probed = read_choice(path, machine_of(machine), tables)) {
      return by_probe(*probed, tables);
    }
  }
  if (const KnownProcessor* known = find_known(machine.processor, tables.back())) {
    return all_formats(std::string(known->kernels),
                       fmt::format("{}: {}", known->name, known->figures));
  }
  Result<Probed> probed = probe_once(machine, tables, false);
  if (probed) {
    if (!probed->kept) {
      spdlog::warn(
          "kernels: what a probe found could not be kept ({}), so the next start measures anew "
          "and may take other kernels than this one; --kernels takes the same each time",
          probed->kept.error().message);
    }
    return by_probe(probed->choice, tables);
  }
  spdlog::warn(
      "kernels: this processor is unknown, and what a probe finds could not be kept ({}); taking "
      "{}, as every worker does that can keep nothing; --kernels takes another",
      probed.error().message, tables.back());
  return all_formats(tables.back(), "not measured, since nothing can be kept");
}

Result<RefreshedChoices> refresh_kernels(const ChoosingMachine& machine) {
  std::vector<std::string> tables = candidates(machine);
  if (tables.size() == 1) return RefreshedChoices{choose_kernels(machine), tables, {}, ""};
  Probed probed = TRY(probe_once(machine, tables, true));
  TRY(std::move(probed.kept));
  return RefreshedChoices{by_probe(probed.choice, tables), tables, probed.choice.speeds,
                          choice_file(machine)};
}

}  // namespace banyan
