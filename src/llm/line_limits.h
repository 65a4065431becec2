// Ends an output at one of its lines, as code completion in editors asks for: llama.cpp's n_indent
// and t_max_predict_ms.
//
// One per sequence; belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace banyan {

class LineLimits {
 public:
  // Lines after the first must begin with `indent_min` blanks and tabs; 0: any number. After
  // `time_s` from the first text on, the output ends with its next line; 0: no limit.
  LineLimits(int64_t indent_min, double time_s) : indent_min_(indent_min), time_s_(time_s) {}

  // Takes the next text of the output. True if the output ends in it; what follows is cut off.
  bool take(std::string& text);

 private:
  bool cut_at_indent(std::string& text);
  bool time_is_up();

  const int64_t indent_min_;
  const double time_s_;
  std::optional<int64_t> indent_;  // of the line so far; none within a line and in the first
  std::optional<std::chrono::steady_clock::time_point> began_;
};

}  // namespace banyan
