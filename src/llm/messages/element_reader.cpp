#include "llm/messages/element_reader.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/space.h"
#include "llm/messages/tool_calls.h"

namespace banyan {
namespace {

constexpr size_t kTagBytesMax = 1024;
constexpr int kElementDepthMax = 64;
constexpr size_t kElementMembersMax = 4096;  // of an object

struct Element {
  std::string_view key, text;
};

// The elements that `text` consists of; none if it is text.
std::vector<Element> elements_of(const ToolCallFormat& format, std::string_view text) {
  const ToolCallFormat::Parameter& tags = format.parameter;
  std::vector<Element> elements;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (!text.starts_with(tags.begin) || text.starts_with(tags.end)) return elements;
    size_t end = text.find(tags.after_key, tags.begin.size());
    if (end == text.npos || end > kTagBytesMax) return elements;
    Element element{.key = trim_space(text.substr(tags.begin.size(), end - tags.begin.size()))};
    text.remove_prefix(end + tags.after_key.size());
    ElementEnd extent =
        ElementExtent().find(format, text).value_or(ElementEnd{text.size(), text.size()});
    element.text = text.substr(0, extent.value);
    text.remove_prefix(extent.next);
    elements.push_back(element);
  }
}

// A key that occurs several times names the items of a list.
void add_member(std::string key, Json value, std::set<std::string>& repeated, Json& object) {
  auto found = object.find(key);
  if (found == object.end()) {
    object[std::move(key)] = std::move(value);
  } else if (repeated.insert(std::move(key)).second) {
    *found = Json::array({*found, std::move(value)});
  } else {
    found->push_back(std::move(value));
  }
}

Json value_of_element(const ToolCallFormat& format, std::string_view text,
                      const ArgumentSchema& schema, int depth) {
  std::vector<Element> elements;
  if (depth < kElementDepthMax && !schema.is_string(text)) elements = elements_of(format, text);
  if (elements.empty()) {
    bool blank = trim_space(text).empty() && !schema.is_string(text);
    if (blank && schema.is_list()) return Json::array();
    if (blank && schema.is_object()) return Json::object();
    return value_of_text(text, schema);
  }
  bool items =
      std::ranges::all_of(elements, [](const Element& element) { return element.key == "item"; });
  if (schema.is_list() || (items && !schema.is_object())) {
    Json list = Json::array();
    ArgumentSchema item = schema.item();
    for (const Element& element : elements) {
      list.push_back(value_of_element(format, element.text, item, depth + 1));
    }
    return list;
  }
  Json object = Json::object();
  std::set<std::string> repeated;
  for (const Element& element : elements) {
    if (object.size() == kElementMembersMax) break;
    ArgumentSchema member = schema.member(element.key);
    add_member(std::string(element.key), value_of_element(format, element.text, member, depth + 1),
               repeated, object);
  }
  return object;
}

}  // namespace

std::optional<ElementEnd> ElementExtent::find(const ToolCallFormat& format, std::string_view text) {
  const ToolCallFormat::Parameter& tags = format.parameter;
  while (true) {
    size_t at = text.find(tags.begin, searched_);
    if (at == text.npos) {
      // A mark may have begun, but not within the last tag.
      size_t certain = text.size() - std::min(text.size(), tags.begin.size() - 1);
      searched_ = std::max(searched_, certain);
      return {};
    }
    std::string_view tag = text.substr(at);
    if (tag.starts_with(format.end)) return ElementEnd{at, at};
    size_t end = tag.find(tags.after_key, tags.begin.size());
    if (std::min(end, tag.size()) > kTagBytesMax) {  // not a tag
      searched_ = at + tags.begin.size();
      continue;
    }
    searched_ = at;
    if (end == tag.npos) return {};
    bool closes = tag.starts_with(tags.end);
    searched_ = at + end + tags.after_key.size();
    if (closes && depth_ == 0) return ElementEnd{at, searched_};
    depth_ += closes ? -1 : 1;
  }
}

Json element_value(const ToolCallFormat& format, std::string_view text,
                   const ArgumentSchema& schema) {
  return value_of_element(format, text, schema, 0);
}

}  // namespace banyan
