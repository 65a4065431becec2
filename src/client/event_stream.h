// Server-sent events out of a body that comes in pieces.
//
// Every line "data: ..." is an event of its own: the servers of language models write no event in
// several lines. Other lines are passed over. A piece that holds whole lines, which is the usual
// case, is not copied.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"
#include "base/error.h"

namespace banyan {

class EventStream {
 public:
  static constexpr size_t kLineBytesMax = 64 << 20;

  // Calls `on_data` with the data of each event that ends within `bytes`; the view holds during the
  // call. An error when a line does not end.
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
      return corrupt("an event of the stream has more than {} bytes", kLineBytesMax);
    }
    return {};
  }

 private:
  // Leaves of `line` the data; false if there is none.
  static bool data_of(std::string_view& line) {
    constexpr std::string_view kField = "data:";
    if (!line.starts_with(kField)) return false;
    line.remove_prefix(kField.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }

  std::string begun_;  // a line whose end has not come
};

}  // namespace banyan
