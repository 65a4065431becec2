#include "cli/bench/kernel_choices.h"

#include <fmt/format.h>

#include <vector>

namespace banyan::cli {
namespace {

bool probed(const RefreshedChoices& chosen) {
  return !chosen.speeds[0].empty();
}

// The speeds that a probe found, one line per format.
std::string speeds_table(const RefreshedChoices& chosen) {
  std::string text = fmt::format("\n{:<14}", "speed");
  for (const std::string& table : chosen.tables) text += fmt::format("{:>13}", table);
  text += '\n';
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    text += fmt::format("{:<14}", kGemmFormats[f].name);
    for (double speed : chosen.speeds[f]) text += fmt::format("{:>13.2f}", speed);
    text += '\n';
  }
  return text + "kept in " + chosen.file + "\n";
}

}  // namespace

std::string choices_table(const RefreshedChoices& chosen) {
  struct Line {
    std::string kernels, reason, formats;
  };
  std::vector<Line> lines;
  const KernelChoices& all = chosen.choices;
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    bool again = !lines.empty() && lines.back().kernels == all.tables[f] &&
                 lines.back().reason == all.reasons[f];
    if (!again) lines.push_back({all.tables[f], all.reasons[f], ""});
    std::string& formats = lines.back().formats;
    formats += formats.empty() ? "" : ", ";
    formats += kGemmFormats[f].name;
  }
  std::string text = fmt::format("\n{:<14}{}\n", "auto takes", "for weights of");
  for (const Line& line : lines) {
    text += fmt::format("{:<14}{}: {}\n", line.kernels, line.formats, line.reason);
  }
  return probed(chosen) ? text + speeds_table(chosen) : text;
}

Json choices_json(const RefreshedChoices& chosen) {
  Json list = Json::array();
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    Json one = {{"weights", kGemmFormats[f].name},
                {"kernels", chosen.choices.tables[f]},
                {"reason", chosen.choices.reasons[f]}};
    if (probed(chosen)) {
      Json& speeds = one["speeds"] = Json::object();
      for (size_t t = 0; t < chosen.tables.size(); ++t) {
        speeds[chosen.tables[t]] = chosen.speeds[f][t];
      }
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace banyan::cli
