// A line on stderr that is rewritten in place and erased at the end; prints nothing if stderr is
// not a terminal. One thread at a time.
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
  // Shows `text`, cut to the terminal's width.
  void show(std::string_view text);

 private:
  const bool terminal_;
  bool drawn_ = false;
};

}  // namespace banyan
