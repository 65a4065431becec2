// A line on stderr that is rewritten in place and erased in the end; nothing when stderr is no
// terminal. One thread at a time.
#pragma once

#include <string_view>

namespace banyan {

class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool visible() const { return terminal_; }
  // As much of it as the terminal is wide.
  void show(std::string_view text);

 private:
  const bool terminal_;
  bool drawn_ = false;
};

}  // namespace banyan
