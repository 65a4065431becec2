#include "llm/line_limits.h"

namespace banyan {

bool LineLimits::take(std::string& text) {
  bool late = time_is_up() && text.find('\n') != text.npos;
  return cut_at_indent(text) || late;
}

bool LineLimits::cut_at_indent(std::string& text) {
  if (indent_min_ == 0) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    bool blank = text[i] == ' ' || text[i] == '\t';
    if (indent_ && blank) ++*indent_;
    if (indent_ && !blank) {
      if (*indent_ < indent_min_) {
        text.resize(i);
        return true;
      }
      indent_.reset();
    }
    if (text[i] == '\n') indent_ = 0;
  }
  return false;
}

bool LineLimits::time_is_up() {
  if (time_s_ == 0) return false;
  auto now = std::chrono::steady_clock::now();
  if (!began_) began_ = now;
  return std::chrono::duration<double>(now - *began_).count() > time_s_;
}

}  // namespace banyan
