// Which folder may include which: docs/ARCHITECTURE.md section 3, as one table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tidy/source.h"

namespace banyan::tidy::layers_test {
namespace {

using Names = std::set<std::string>;

// A layer and those directly below it; it may include these, what is below them, and itself. A
// layer is a folder of src/, save that `dtype` is what of src/tensor knows no tensor.
const std::map<std::string, Names>& layers_below() {
  static const std::map<std::string, Names> kBelow = {
      {"base", {}},
      {"dtype", {"base"}},
      {"kernels", {"dtype"}},
      {"quant", {"kernels"}},
      {"tensor", {"dtype"}},
      {"dist", {"tensor"}},
      {"cache", {"tensor", "kernels"}},
      {"weights", {"tensor", "quant", "dist", "cache"}},
      {"ops", {"kernels", "quant", "dist", "cache"}},
      {"nn", {"weights", "ops"}},
      {"models", {"nn"}},
      {"tier", {"cache"}},
      {"router", {"cache"}},
      {"engine", {"models", "tier"}},
      {"quantize", {"models"}},
      {"replay", {"engine"}},
      {"fleet", {"replay", "router"}},
      {"unicode", {"base"}},
      {"jinja", {"unicode"}},
      {"text", {"jinja"}},
      {"grammar", {"text"}},
      {"llm", {"engine", "text", "grammar"}},
      {"server", {"llm", "client", "router"}},
      {"client", {"base"}},
      {"eval", {"client"}},
      {"hub", {"base"}},
      {"program", {"llm", "client"}},
      {"cli", {"server", "program", "eval", "quantize", "fleet", "hub"}},
  };
  return kBelow;
}

const std::map<std::string, std::string>& public_headers() {
  static const std::map<std::string, std::string> kLayers = {
      {"status", "base"},
      {"config", "base"},
      {"request", "base"},
      {"grammar", "grammar"},
      {"engine", "engine"},
      {"llm", "llm"},
      {"program", "program"},
      {"async_llm", "llm"},
      {"options", "cli"},
      {"grammar_source", "base"},
      {"constraint_source", "base"},
      {"token", "base"},
      {"model_info", "base"},
  };
  return kLayers;
}

// The layer of a header as it is included ("tensor/dtype.h", "banyan/llm.h"); "" when unknown.
std::string layer_of(std::string_view include) {
  for (std::string_view name : {"tensor/dtype.", "tensor/float_types.", "tensor/device."}) {
    if (include.starts_with(name)) return "dtype";
  }
  std::string folder(include.substr(0, std::min(include.find('/'), include.size())));
  if (folder == "banyan") {
    std::string name(include.substr(folder.size() + 1));
    auto found = public_headers().find(name.substr(0, name.find('.')));
    return found == public_headers().end() ? "" : found->second;
  }
  return layers_below().contains(folder) ? folder : "";
}

// Whether `upper` may include `lower`.
bool may_include(const std::string& upper, const std::string& lower) {
  if (upper == lower) return true;
  for (const std::string& below : layers_below().at(upper)) {
    if (may_include(below, lower)) return true;
  }
  return false;
}

// The included name, for #include "..." and for <banyan/...>; "" for other lines.
std::string_view our_include(std::string_view code_line, std::string_view line) {
  if (code_line.find("#include") == code_line.npos) return {};
  size_t open = line.find_first_of("\"<");
  if (open == line.npos) return {};
  std::string_view name = line.substr(open + 1);
  name = name.substr(0, name.find_first_of("\">"));
  return line[open] == '"' || name.starts_with("banyan/") ? name : std::string_view();
}

Findings check_includes(const SourceFile& file) {
  Findings findings;
  bool bindings = file.path.starts_with("bindings/");
  std::string_view in_root = file.path;
  if (in_root.starts_with("src/")) in_root.remove_prefix(4);
  if (in_root.starts_with("include/")) in_root.remove_prefix(8);
  if (!file.is_cpp() || (in_root.size() == file.path.size() && !bindings)) return findings;
  std::string upper = bindings ? "bindings" : layer_of(in_root);
  if (upper.empty()) {
    return {
        fmt::format("{}: its layer is unknown; add it to tests/tidy/layers_test.cpp", file.path)};
  }
  std::vector<std::string_view> code = lines_of(file.code), text = lines_of(file.text);
  for (size_t i = 0; i < code.size(); ++i) {
    std::string_view name = our_include(code[i], text[i]);
    if (name.empty()) continue;
    if (bindings && name.find('/') == name.npos) continue;  // of the same folder
    std::string where = fmt::format("{}:{}: ", file.path, i + 1);
    std::string lower = layer_of(name);
    if (bindings && !name.starts_with("banyan/")) {
      findings.push_back(where + fmt::format("bindings include only banyan/, not {}", name));
    } else if (lower.empty()) {
      findings.push_back(where + fmt::format("{} is in no known layer", name));
    } else if (!bindings && !may_include(upper, lower)) {
      findings.push_back(where + fmt::format("{} may not include {} ({})", upper, lower, name));
    }
  }
  return findings;
}

TEST(Layers, IncludesPointDownwards) {
  EXPECT_EQ(findings_in_repository(check_includes), "");
}

TEST(Layers, TheRuleSeesAWrongDirection) {
  auto check = [](const char* path, const char* text) {
    return check_includes(make_source(path, text)).size();
  };
  EXPECT_EQ(check("src/kernels/x.h", "#include \"tensor/tensor.h\"\n"), 1u);
  EXPECT_EQ(check("src/kernels/x.h", "#include \"tensor/dtype.h\"\n"), 0u);
  EXPECT_EQ(check("src/engine/x.cpp", "#include \"text/tokenizer.h\"\n"), 1u);
  EXPECT_EQ(check("src/engine/x.cpp", "#include \"banyan/grammar.h\"\n"), 1u);
  EXPECT_EQ(check("src/engine/x.cpp", "#include <banyan/llm.h>\n"), 1u);
  EXPECT_EQ(check("src/text/x.cpp", "#include \"banyan/request.h\"\n#include <vector>\n"), 0u);
  EXPECT_EQ(check("src/cli/x.cpp", "#include \"engine/engine.h\"\n"), 0u);
  EXPECT_EQ(check("src/cli/x.cpp", "#include \"proxy/proxy.h\"\n"), 1u);
  EXPECT_EQ(check("src/base/x.cpp", "// #include \"llm/llm.h\"\n"), 0u);
  EXPECT_EQ(check("include/banyan/status.h", "#include \"engine/engine.h\"\n"), 1u);
  EXPECT_EQ(check("include/banyan/novel.h", ""), 1u);
  EXPECT_EQ(check("src/novel/x.cpp", ""), 1u);
  EXPECT_EQ(check("src/base/x.cpp", "#include \"file.h\"\n#include \"../base/file.h\"\n"), 2u);
  EXPECT_EQ(check("bindings/python/x.cpp", "#include \"llm/llm.h\"\n"), 1u);
  EXPECT_EQ(check("bindings/python/x.cpp", "#include \"banyan/llm.h\"\n"), 0u);
  EXPECT_EQ(check("tests/unit/x_test.cpp", "#include \"support/shared.h\"\n"), 0u);
}

}  // namespace
}  // namespace banyan::tidy::layers_test
