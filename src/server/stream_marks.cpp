#include "server/stream_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

#include "base/check.h"
#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

// Takes "@5f3a" off the front of `text`: lower-case hexadecimal digits, as RemoteWorker::name().
std::string_view take_place(const char*& at, const char* end) {
  if (at == end || *at != '@') return {};
  const char* begin = ++at;
  while (at != end && std::isxdigit(static_cast<unsigned char>(*at))) ++at;
  return {begin, at};
}

}  // namespace

Status StreamMarks::resume(std::string_view last_event_id) {
  std::vector<int64_t> had;
  std::vector<std::string> places(places_.size());
  const char *at = last_event_id.data(), *end = at + last_event_id.size();
  bool good = last_event_id.size() < 4096, last = false;
  while (good && at != end) {
    int64_t count = -1;
    auto [next, error] = std::from_chars(at, end, count);
    good = error == std::errc() && count >= 0;
    had.push_back(count);
    at = next;
    if (!last && had.size() <= places.size()) places[had.size() - 1] = take_place(at, end);
    if (!good || at == end) break;
    good = !last && (*at == ',' || *at == ';') && at + 1 != end;
    last = *at++ == ';';
  }
  if (good && !last) had.push_back(0);
  if (!good || had.size() != had_.size()) {
    return invalid_argument(
        "Last-Event-ID is {}; an id of a stream of {} choices has {} numbers separated by commas. "
        "Send the id of the last event with the unchanged request",
        quote(last_event_id), had_.size() - 1, had_.size() - 1);
  }
  had_ = std::move(had);
  places_ = std::move(places);
  return {};
}

void StreamMarks::mark_each(size_t counter, std::string& events) {
  constexpr std::string_view kEnd = "\n\n";
  CHECK(counter < counts_.size(), "{} of {}", counter, counts_.size());
  if (events.empty()) return;
  marked_.clear();
  std::string_view left = events;
  while (!left.empty()) {
    size_t found = left.find(kEnd);
    size_t end = found == left.npos ? left.size() : found + kEnd.size();
    if (++counts_[counter] > had_[counter]) {
      append_id(marked_);
      marked_ += left.substr(0, end);
    }
    left.remove_prefix(end);
  }
  events.swap(marked_);
}

// Skipped events count as sent, even if the run has not reached them yet.
void StreamMarks::append_id(std::string& out) const {
  auto to = std::back_inserter(out);
  auto count = [&](size_t i) { return std::max(counts_[i], had_[i]); };
  size_t choices = counts_.size() - 1;
  out += "id: ";
  for (size_t i = 0; i < choices; ++i) {
    fmt::format_to(to, "{}{}", i > 0 ? "," : "", count(i));
    if (!places_[i].empty()) fmt::format_to(to, "@{}", places_[i]);
  }
  if (count(choices) > 0) fmt::format_to(to, ";{}", count(choices));
  out += '\n';
}

}  // namespace banyan
