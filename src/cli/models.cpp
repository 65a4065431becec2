// banyan models: lists the supported architectures, and those known but unsupported.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "base/json_text.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "models/registry.h"

namespace banyan::cli {
namespace {

struct ModelsOptions {
  bool markdown = false;
  bool json = false;
};

std::string as_text() {
  size_t names = 0, mixers = 0, ffns = 0;
  for (const Family& family : registered_families()) {
    names = std::max(names, family.architecture.size());
    mixers = std::max(mixers, family.notes.mixers.size());
    ffns = std::max(ffns, family.notes.ffn.size());
  }
  std::string text = "Architectures that run, by \"architectures\" in config.json:\n\n";
  for (const Family& family : registered_families()) {
    const FamilyNotes& notes = family.notes;
    text += fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}\n", family.architecture, names, notes.mixers,
                        mixers, notes.ffn, ffns, notes.checkpoints);
    if (!notes.limits.empty()) text += fmt::format("  {:<{}}  ({})\n", "", names, notes.limits);
  }
  text += "\nKnown, and not supported:\n\n";
  for (const RefusedFamily& family : refused_families()) {
    text += fmt::format("  {}: {}\n", family.architecture, family.why);
  }
  return text;
}

std::string as_markdown() {
  std::string text =
      "| architecture | mixes positions by | feed-forward | published checkpoints | notes |\n"
      "|---|---|---|---|---|\n";
  for (const Family& family : registered_families()) {
    const FamilyNotes& notes = family.notes;
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", family.architecture, notes.mixers,
                        notes.ffn, notes.checkpoints, notes.limits);
  }
  text += "\nKnown, and not supported:\n\n| architecture | what is missing |\n|---|---|\n";
  for (const RefusedFamily& family : refused_families()) {
    text += fmt::format("| `{}` | {} |\n", family.architecture, family.why);
  }
  return text;
}

Json as_json() {
  Json supported = Json::array(), refused = Json::array();
  for (const Family& family : registered_families()) {
    supported.push_back({{"architecture", family.architecture},
                         {"mixers", family.notes.mixers},
                         {"ffn", family.notes.ffn},
                         {"checkpoints", family.notes.checkpoints},
                         {"limits", family.notes.limits}});
  }
  for (const RefusedFamily& family : refused_families()) {
    refused.push_back({{"architecture", family.architecture}, {"why", family.why}});
  }
  return {{"supported", std::move(supported)}, {"refused", std::move(refused)}};
}

VerbAction declare_models(CLI::App& app) {
  auto o = std::make_shared<ModelsOptions>();
  auto* markdown = app.add_flag("--markdown", o->markdown, "Print the tables of docs/MODELS.md");
  app.add_flag("--json", o->json, "Print one JSON object: supported, refused")->excludes(markdown);
  return [o]() -> Result<int> {
    write_stdout(o->json ? dump_json(as_json()) + "\n" : o->markdown ? as_markdown() : as_text());
    return kExitSuccess;
  };
}

}  // namespace

const Verb kModelsVerb = {"models", "Architectures that run, and those that are known and refused",
                          "  banyan models\n"
                          "  banyan models --json",
                          declare_models};

}  // namespace banyan::cli
