#include "grammar/structural_tag.h"

#include <algorithm>

#include "base/quote.h"
#include "grammar/ebnf.h"
#include "grammar/regex/nfa.h"
#include "grammar/regex/regex.h"
#include "grammar/regex/rules.h"
#include "grammar/run/token_vocabulary.h"
#include "grammar/schema/json_schema.h"

namespace banyan {
namespace {

// Any text, then one of `tags`, then, with `goes_on`, text of its characters (at least one if
// `more`).
Result<Dfa> texts_with(const std::vector<std::string>& tags, const CodepointSet* goes_on, bool more,
                       Budget& budget) {
  Nfa nfa(CharacterCoding::kUtf8, budget);
  CodepointSet all = CodepointSet::all();
  uint32_t next = nfa.accept();
  if (goes_on != nullptr) {
    next = nfa.star(*goes_on, next);
    if (more) next = nfa.characters(*goes_on, next);
  }
  uint32_t ways = nfa.text(tags[0], next);
  for (size_t i = 1; i < tags.size(); ++i) ways = nfa.split(nfa.text(tags[i], next), ways);
  return nfa.determinize(nfa.star(all, ways));
}

Result<Dfa> texts_without(const std::vector<std::string>& tags, Budget& budget) {
  CodepointSet all = CodepointSet::all();
  Dfa everything = TRY(dfa_of_regex("(?s).*", budget));
  if (tags.empty()) return everything;
  Dfa with = TRY(texts_with(tags, &all, false, budget));
  return combine(everything, with, DfaOperation::kDifference, budget);
}

class Describer {
 public:
  Describer(const JsonSchemaOptions& options, Budget& budget)
      : options_(options), budget_(budget) {}

  Result<Rules> run(const Json& description) {
    if (!description.is_object()) return invalid_argument("a structural tag is a JSON object");
    RuleId root = rules_.add_rule("the structural tag");
    rules_.root = root;
    ExpressionId body;
    if (description.contains("format")) {
      body = TRY(format(description["format"], "format", {}, 0));
    } else if (description.contains("structures")) {
      body = TRY(legacy(description));
    } else {
      return invalid_argument("a structural tag needs `format`, or `structures` and `triggers`");
    }
    rules_.set_body(root, body);
    return std::move(rules_);
  }

 private:
  struct Tag {
    std::string begin;
    ExpressionId rest;  // content and end tag
  };

  Result<std::string> text_of(const Json& node, const char* key, const std::string& where) {
    if (!node.contains(key) || !node[key].is_string()) {
      return invalid_argument("{}/{}: must be a string", where, key);
    }
    return node[key].get<std::string>();
  }

  Result<std::vector<std::string>> texts_of(const Json& node, const char* key,
                                            const std::string& where) {
    std::vector<std::string> texts;
    bool list = node.contains(key) && node[key].is_array();
    if (!list) return invalid_argument("{}/{}: must be a list of strings", where, key);
    for (const Json& text : node[key]) {
      if (!text.is_string() || text == "") {
        return invalid_argument("{}/{}: must be a list of strings, none empty", where, key);
      }
      texts.push_back(text);
    }
    return texts;
  }

  // The literal text, or the special token with that name.
  ExpressionId tag_text(const std::string& text) {
    if (text.empty()) return rules_.empty();
    return rules_.choice({rules_.text(text), rules_.text(special_token_text(text))});
  }

  Result<ExpressionId> schema(const Json& schema) {
    return rules_.import(TRY(rules_of_json_schema(schema, options_, budget_)));
  }

  Result<ExpressionId> legacy(const Json& description) {
    std::vector<Tag> tags;
    const Json& structures = description["structures"];
    if (!structures.is_array()) return invalid_argument("structures: must be a list");
    for (size_t i = 0; i < structures.size(); ++i) {
      std::string where = fmt::format("structures/{}", i);
      if (!structures[i].is_object()) return invalid_argument("{}: must be an object", where);
      std::string begin = TRY(text_of(structures[i], "begin", where));
      std::string end = TRY(text_of(structures[i], "end", where));
      if (!structures[i].contains("schema")) {
        return invalid_argument("{}/schema: is missing", where);
      }
      ExpressionId content = TRY(schema(structures[i]["schema"]));
      tags.push_back({begin, rules_.sequence({content, tag_text(end)})});
    }
    auto triggers = TRY(texts_of(description, "triggers", "structural_tag"));
    return triggered(triggers, tags, false, false, "structural_tag", {});
  }

  // `ends`: the strings after the format at which free text must stop.
  Result<ExpressionId> format(const Json& node, const std::string& where,
                              const std::vector<std::string>& ends, int depth) {
    if (depth > budget_.limits().depth_max) return exhausted("{}: nested too deeply", where);
    if (!node.is_object()) return invalid_argument("{}: must be an object", where);
    std::string type = TRY(text_of(node, "type", where));
    if (type == "const_string") return tag_text(TRY(text_of(node, "value", where)));
    if (type == "any_text") return free_text_without(rules_, ends, budget_);
    if (type == "regex") {
      Regex regex =
          TRY(parse_regex(TRY(text_of(node, "pattern", where)), RegexDialect::kRe2, budget_));
      return add_regex(rules_, regex, budget_);
    }
    if (type == "grammar") {
      std::string source = TRY(text_of(node, "grammar", where));
      return rules_.import(TRY(rules_of_ebnf(source, "root", budget_)));
    }
    if (type == "json_schema") {
      if (!node.contains("json_schema")) {
        return invalid_argument("{}/json_schema: is missing", where);
      }
      if (node.contains("style") && node["style"] != "json") {
        return unsupported("{}/style: {} is not supported", where, quote(node["style"].dump()));
      }
      return schema(node["json_schema"]);
    }
    if (type == "tag") {
      Tag tag = TRY(this->tag(node, where, depth));
      return rules_.sequence({tag_text(tag.begin), tag.rest});
    }
    if (type == "sequence" || type == "or") return list(node, type, where, ends, depth);
    if (type == "triggered_tags" || type == "tags_with_separator") {
      return tag_list(node, type, where, ends, depth);
    }
    return unsupported("{}/type: {} is not supported", where, quote(type));
  }

  Result<ExpressionId> list(const Json& node, const std::string& type, const std::string& where,
                            const std::vector<std::string>& ends, int depth) {
    if (!node.contains("elements") || !node["elements"].is_array() || node["elements"].empty()) {
      return invalid_argument("{}/elements: must be a list, not empty", where);
    }
    const Json& elements = node["elements"];
    std::vector<ExpressionId> parts;
    for (size_t i = 0; i < elements.size(); ++i) {
      // Free text stops where the following literal begins.
      std::vector<std::string> stops = ends;
      if (type == "sequence" && i + 1 < elements.size()) {
        stops.clear();
        const Json& next = elements[i + 1];
        for (const char* key : {"value", "begin"}) {
          if (next.is_object() && next.contains(key) && next[key].is_string() && next[key] != "") {
            stops.push_back(next[key]);
          }
        }
      }
      parts.push_back(
          TRY(format(elements[i], fmt::format("{}/elements/{}", where, i), stops, depth + 1)));
    }
    return type == "or" ? rules_.choice(parts) : rules_.sequence(parts);
  }

  Result<Tag> tag(const Json& node, const std::string& where, int depth) {
    if (!node.is_object()) return invalid_argument("{}: must be an object", where);
    std::string begin = TRY(text_of(node, "begin", where));
    std::vector<std::string> ends;
    if (node.contains("end") && node["end"].is_array()) {
      ends = TRY(texts_of(node, "end", where));
    } else {
      ends = {TRY(text_of(node, "end", where))};
    }
    if (!node.contains("content")) return invalid_argument("{}/content: is missing", where);
    std::vector<std::string> stops = ends;
    std::erase(stops, "");
    ExpressionId content = TRY(format(node["content"], where + "/content", stops, depth + 1));
    std::vector<ExpressionId> closings;
    for (const std::string& end : ends) closings.push_back(tag_text(end));
    return Tag{begin, rules_.sequence({content, rules_.choice(closings)})};
  }

  Result<ExpressionId> tag_list(const Json& node, const std::string& type, const std::string& where,
                                const std::vector<std::string>& ends, int depth) {
    if (!node.contains("tags") || !node["tags"].is_array() || node["tags"].empty()) {
      return invalid_argument("{}/tags: must be a list, not empty", where);
    }
    std::vector<Tag> tags;
    for (size_t i = 0; i < node["tags"].size(); ++i) {
      tags.push_back(TRY(tag(node["tags"][i], fmt::format("{}/tags/{}", where, i), depth)));
    }
    bool at_least_one = node.contains("at_least_one") && node["at_least_one"] == true;
    bool once = node.contains("stop_after_first") && node["stop_after_first"] == true;
    if (type == "triggered_tags") {
      return triggered(TRY(texts_of(node, "triggers", where)), tags, at_least_one, once, where,
                       ends);
    }
    ExpressionId separator = tag_text(TRY(text_of(node, "separator", where)));
    std::vector<ExpressionId> ways;
    for (const Tag& t : tags) ways.push_back(rules_.sequence({tag_text(t.begin), t.rest}));
    ExpressionId one = rules_.choice(ways);
    ExpressionId all = one;
    if (!once) {
      ExpressionId more = rules_.sequence({separator, one});
      all = rules_.sequence({one, rules_.repeat(more, 0, Rules::kUnbounded)});
    }
    return at_least_one ? all : rules_.optional(all);
  }

  Result<ExpressionId> triggered(const std::vector<std::string>& triggers,
                                 const std::vector<Tag>& tags, bool at_least_one, bool once,
                                 const std::string& where, const std::vector<std::string>& ends) {
    if (triggers.empty()) return invalid_argument("{}/triggers: must not be empty", where);
    std::vector<ExpressionId> ways;
    std::vector<bool> used(tags.size(), false);
    for (size_t t = 0; t < triggers.size(); ++t) {
      std::vector<ExpressionId> rests;
      for (size_t i = 0; i < tags.size(); ++i) {
        if (!tags[i].begin.starts_with(triggers[t])) continue;
        used[i] = true;
        rests.push_back(
            rules_.sequence({rules_.text(tags[i].begin.substr(triggers[t].size())), tags[i].rest}));
      }
      if (rests.empty()) {
        return invalid_argument("{}/triggers: no tag begins with {}", where, quote(triggers[t]));
      }
      ExpressionId free = TRY(free_text_until(rules_, triggers, t, budget_));
      ways.push_back(rules_.sequence({free, rules_.choice(rests)}));
    }
    for (size_t i = 0; i < tags.size(); ++i) {
      if (!used[i]) {
        return invalid_argument("{}: no trigger begins the tag {}", where, quote(tags[i].begin));
      }
    }
    ExpressionId part = rules_.choice(ways);
    std::vector<std::string> stops = triggers;
    stops.insert(stops.end(), ends.begin(), ends.end());
    ExpressionId tail = TRY(free_text_without(rules_, stops, budget_));
    if (once) return at_least_one ? part : rules_.choice({part, tail});
    return rules_.sequence({rules_.repeat(part, at_least_one ? 1 : 0, Rules::kUnbounded), tail});
  }

  JsonSchemaOptions options_;
  Budget& budget_;
  Rules rules_;
};

}  // namespace

Result<ExpressionId> free_text_until(Rules& rules, const std::vector<std::string>& tags,
                                     size_t which, Budget& budget) {
  CodepointSet all = CodepointSet::all();
  Dfa ending = TRY(texts_with({tags[which]}, nullptr, false, budget));
  Dfa earlier = TRY(texts_with(tags, &all, true, budget));
  Dfa first = TRY(combine(ending, earlier, DfaOperation::kDifference, budget));
  ExpressionId without = TRY(free_text_without(rules, tags, budget));
  ExpressionId special = rules.text(special_token_text(tags[which]));
  return rules.choice({rules.dfa(std::move(first)), rules.sequence({without, special})});
}

Result<ExpressionId> free_text_without(Rules& rules, const std::vector<std::string>& tags,
                                       Budget& budget) {
  return rules.dfa(TRY(texts_without(tags, budget)));
}

Result<Rules> rules_of_structural_tag(const Json& description, const JsonSchemaOptions& options,
                                      Budget& budget) {
  return Describer(options, budget).run(description);
}

}  // namespace banyan
