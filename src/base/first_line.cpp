#include "base/first_line.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace banyan {

Result<std::string> read_first_line(std::string_view option, const std::string& file) {
  Result<std::string> read = read_file(file);
  if (!read) return io_error("{} {}", option, read.error().message);
  std::string text = *std::move(read);
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  if (!text.empty()) return text;
  return invalid_argument("{} {} has nothing in its first line", option, file);
}

}  // namespace banyan
