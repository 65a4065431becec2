#include "text/tokenizer/post_processor.h"

#include <string_view>

#include "base/quote.h"
#include "text/json_fields.h"
#include "text/tokenizer/vocabulary.h"

namespace banyan {
namespace {

constexpr size_t kTokensMax = 1024;

Result<TokenId> id_of(const Json& json, const JsonFields& fields, std::string_view key) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > Vocabulary::kIdMax) {
    return fields.wrong(key, "token ids");
  }
  return json.get<TokenId>();
}

// Affects only offsets, which Banyan does not report.
Status add_byte_level(const JsonFields&, PostProcessor&) {
  return {};
}

// ["<s>", 0] pairs under "cls" and "sep".
Status add_cls_sep(const JsonFields& fields, PostProcessor& made) {
  for (std::string_view key : {"cls", "sep"}) {
    const Json* pair = TRY(fields.array(key));
    if (pair->size() != 2) return fields.wrong(key, "[token, id]");
    const TokenId id = TRY(id_of((*pair)[1], fields, key));
    if (key == "cls") {
      made.before.insert(made.before.begin(), id);
    } else {
      made.after.push_back(id);
    }
  }
  return {};
}

Result<std::vector<TokenId>> template_token(const JsonFields& fields, const JsonFields& piece) {
  const std::string name = TRY(piece.string("id"));
  const JsonFields tokens = TRY(fields.object("special_tokens"));
  const JsonFields token = TRY(tokens.object(name));
  std::vector<TokenId> ids;
  for (const Json& id : *TRY(token.array("ids"))) ids.push_back(TRY(id_of(id, token, "ids")));
  return ids;
}

Status add_template(const JsonFields& fields, PostProcessor& made) {
  std::vector<TokenId> before, after;
  int texts = 0;
  for (const Json& json : *TRY(fields.array("single"))) {
    const JsonFields piece = TRY(JsonFields::of(json, fields.place() + ": single"));
    if (piece.find("Sequence") != nullptr) {
      const JsonFields sequence = TRY(piece.object("Sequence"));
      if (TRY(sequence.string("id")) != "A") return sequence.wrong("id", "\"A\"");
      ++texts;
      continue;
    }
    const auto ids = TRY(template_token(fields, TRY(piece.object("SpecialToken"))));
    auto& side = texts == 0 ? before : after;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (texts != 1) {
    return unsupported("{}: a template must contain the text once; this one has it {} times",
                       fields.place(), texts);
  }
  made.before.insert(made.before.begin(), before.begin(), before.end());
  made.after.insert(made.after.end(), after.begin(), after.end());
  return {};
}

struct PostProcessorKind {
  std::string_view name;
  Status (*add)(const JsonFields& fields, PostProcessor& made);
};

constexpr PostProcessorKind kPostProcessors[] = {
    {"ByteLevel", add_byte_level},
    {"TemplateProcessing", add_template},
    {"RobertaProcessing", add_cls_sep},
    {"BertProcessing", add_cls_sep},
};

}  // namespace

Result<PostProcessor> PostProcessor::make(const Json& json, const std::string& place) {
  PostProcessor made;
  if (json.is_null()) return made;
  TRY(for_each_part(json, place, "post-processor", "processors", kPostProcessors,
                    [&](const PostProcessorKind& kind, const JsonFields& fields) {
                      return kind.add(fields, made);
                    }));
  if (made.before.size() + made.after.size() > kTokensMax) {
    return exhausted("{}: more than {} tokens around a text", place, kTokensMax);
  }
  return made;
}

}  // namespace banyan
