// The parts that a program adds to a state.
#include "program/primitive.h"

namespace banyan {

Part::Part(std::string text) : Part(PartMaker::make(TextPart{std::move(text)})) {}
Part::Part(std::string_view text) : Part(std::string(text)) {}
Part::Part(const char* text) : Part(std::string(text)) {}

Part gen(std::string name, GenerationOptions options, std::optional<SamplingParams> sampling) {
  return PartMaker::make(GenPart{std::move(name), std::move(options), std::move(sampling)});
}

Part select(std::string name, std::vector<std::string> choices, SelectOptions options) {
  return PartMaker::make(SelectPart{std::move(name), std::move(choices), options});
}

Part score(std::string name, std::string text) {
  return PartMaker::make(ScorePart{std::move(name), std::move(text)});
}

Part role_begin(std::string role) {
  return PartMaker::make(RoleBegin{std::move(role)});
}

Part role_end() {
  return PartMaker::make(RoleEnd{});
}

Part message(std::string role, Part content) {
  return role_begin(std::move(role)) + content + role_end();
}

Part system(Part content) {
  return message("system", std::move(content));
}

Part user(Part content) {
  return message("user", std::move(content));
}

Part assistant(Part content) {
  return message("assistant", std::move(content));
}

Part image(std::string path) {
  return PartMaker::make(MediaPart{"image", std::move(path)});
}

Part video(std::string path) {
  return PartMaker::make(MediaPart{"video", std::move(path)});
}

}  // namespace banyan
