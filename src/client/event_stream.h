// Parses server-sent events from a body that arrives in pieces.
//
// Each "data: ..." line is one event, since LLM servers never write multi-line events; other lines
// are skipped. Whole lines within a piece, the usual case, are not copied.
//
// Belongs to one thread.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"
#include "base/error.h"

namespace banyan {

class EventStream {
 public:
  static constexpr size_t kLineBytesMax = 64 << 20;

  // Calls `on_data` for each event completed by `bytes`; the view is valid during the call. A line
  // that exceeds kLineBytesMax is an error.
  template <class OnData>
  Status feed(std::string_view bytes, OnData on_data) {
    while (true) {
      size_t newline = bytes.find('\n');
      if (newline == bytes.npos) break;
      std::string_view line = bytes.substr(0, newline);
      bytes.remove_prefix(newline + 1);
      if (!begun_.empty()) {
        begun_ += line;
        line = begun_;
      }
      if (data_of(line)) on_data(line);
      begun_.clear();
    }
    begun_ += bytes;
    if (begun_.size() > kLineBytesMax) {
      return corrupt("an event of the stream exceeds {} bytes", kLineBytesMax);
    }
    return {};
  }

 private:
  // Reduces `line` to its data; false if it has none.
  static bool data_of(std::string_view& line) {
    constexpr std::string_view kField = "data:";
    if (!line.starts_with(kField)) return false;
    line.remove_prefix(kField.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }

  std::string begun_;  // an incomplete line
};

}  // namespace banyan
