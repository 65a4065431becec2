#include "ptx/module.h"

#include <algorithm>

#include "ptx/decoder.h"
#include "ptx/type.h"

namespace banyan::ptx {
namespace {

// The place after the bracket that closes the one at `open`.
size_t closing(std::string_view text, size_t open, char opens, char closes) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += text[at] == opens ? 1 : text[at] == closes ? -1 : 0;
    if (depth == 0) return at + 1;
  }
  fail("a {} is never closed", opens);
}

// Appends the shared arrays that are declared outside of entries.
void find_shared(std::string_view text, std::vector<Variable>& shared) {
  for (size_t at = text.find(".shared"); at < text.size(); at = text.find(".shared", at + 1)) {
    shared.push_back(parse_variable(text.substr(at, text.find(';', at) - at)));
  }
}

}  // namespace

Variable parse_variable(std::string_view text) {
  Variable variable{{}, {}, 0, 0};
  std::vector<std::string_view> all = words(text);
  size_t element = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    std::string_view word = all[i];
    if (word == ".align" && i + 1 < all.size()) {
      auto alignment = static_cast<size_t>(parse_integer(all[++i]));
      // That of what a pointer points to says nothing of the pointer.
      if (element == 0) variable.alignment = alignment;
    } else if (word == ".shared" || word == ".local" || word == ".param") {
      variable.space = word.substr(1);
    } else if (word[0] == '.') {
      if (auto type = parse_type(word.substr(1))) element = type->bytes;
    } else {
      size_t bracket = word.find('[');
      variable.name = word.substr(0, bracket);
      std::string_view length = bracket == word.npos ? "1" : word.substr(bracket + 1);
      if (length.ends_with(']')) length.remove_suffix(1);
      variable.bytes = length.empty() ? 0 : element * static_cast<size_t>(parse_integer(length));
    }
  }
  if (element == 0 || variable.name.empty()) fail("'{}' is not understood", text);
  if (variable.alignment == 0) variable.alignment = element;
  return variable;
}

Module::Module(std::string text) : text_(std::move(text)) {
  blank_comments(text_);
  std::string_view all = text_;
  if (all.find(".version") == all.npos) fail("this is no PTX: it has no .version");
  size_t at = 0;
  int line = 1;
  for (size_t found = all.find(".entry"); found != all.npos; found = all.find(".entry", at)) {
    find_shared(all.substr(at, found - at), shared_);
    size_t open = all.find('(', found), body = all.find('{', found);
    std::string name(trim(all.substr(found + 6, std::min(open, body) - found - 6)));
    size_t head_end = open < body ? closing(all, open, '(', ')') : open = body;
    size_t end = closing(all, body, '{', '}');
    int body_line = line + static_cast<int>(std::ranges::count(all.substr(at, body - at), '\n'));
    std::string_view head = all.substr(open, head_end - open);
    if (!head.empty()) head = head.substr(1, head.size() - 2);
    sources_[name] = {head, all.substr(body + 1, end - body - 2), body_line};
    line += static_cast<int>(std::ranges::count(all.substr(at, end - at), '\n'));
    at = end;
  }
}

std::vector<std::string> Module::names() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : sources_) names.push_back(name);
  return names;
}

const Entry& Module::entry(const std::string& name) const {
  auto decoded = entries_.find(name);
  if (decoded != entries_.end()) return decoded->second;
  auto source = sources_.find(name);
  if (source == sources_.end()) fail("there is no entry {}", name);
  Entry& entry = entries_[name];
  entry.name = name;
  try {
    Decoder(entry).decode(source->second.head, shared_, source->second.body, source->second.line);
  } catch (...) {
    entries_.erase(name);
    throw;
  }
  return entry;
}

}  // namespace banyan::ptx
