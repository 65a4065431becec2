#include "dist/gather.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace banyan {
namespace {

struct Report {
  static constexpr int32_t kFine = -1;
  int32_t code = kFine;
  std::array<char, 1020> text = {};  // ends with a zero
};

}  // namespace

Status agree(Comm& comm, const Status& mine) {
  Report report;
  if (!mine) {
    report.code = static_cast<int32_t>(mine.error().code);
    const std::string& text = mine.error().message;
    std::copy_n(text.data(), std::min(text.size(), report.text.size() - 1), report.text.data());
  }
  std::vector<Report> all = gather(comm, report);
  auto failed = std::ranges::find_if(all, [](const Report& r) { return r.code != Report::kFine; });
  if (failed == all.end()) return {};
  auto rank = failed - all.begin();
  if (rank == comm.rank().index || !comm.exchanges()) return mine;
  std::string text = failed->text.data();
  if (rank > 0) text = fmt::format("rank {} of {}: {}", rank, all.size(), text);
  return make_error(static_cast<ErrorCode>(failed->code), std::move(text));
}

}  // namespace banyan
