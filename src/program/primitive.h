// The primitives that a Part consists of.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "banyan/program.h"

namespace banyan {

struct TextPart {
  std::string text;
};
struct RoleBegin {
  std::string role;
};
struct RoleEnd {};
struct GenPart {
  std::string name;
  GenerationOptions options;
  std::optional<SamplingParams> sampling;
};
struct SelectPart {
  std::string name;
  std::vector<std::string> choices;
  SelectOptions options;
};
struct ScorePart {
  std::string name, text;
};
struct MediaPart {
  std::string kind, path;  // "image"
};

struct Primitive {
  std::variant<TextPart, RoleBegin, RoleEnd, GenPart, SelectPart, ScorePart, MediaPart> what;
};

struct PartMaker {
  template <class What>
  static Part make(What what) {
    Part part;
    part.primitives_.push_back(std::make_shared<const Primitive>(Primitive{std::move(what)}));
    return part;
  }
};

}  // namespace banyan
