// Tokenizing, detokenizing, and aborting requests by id.
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "llm/chat_prompt.h"
#include "llm/llm_parts.h"
#include "server/fields/sampling.h"
#include "server/json/endpoint.h"
#include "server/openai/format.h"
#include "server/sglang/endpoints.h"
#include "server/token_text.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {
namespace {

Result<const Tokenizer*> find_tokenizer(const Llm& llm) {
  if (const Tokenizer* tokenizer = tokenizer_of(llm)) return tokenizer;
  return unsupported("the model has no tokenizer");
}

// Tokenizes `messages` as rendered by the chat template.
Parsed<Json> tokenize_chat(const RequestContext& context, RequestFields& fields) {
  ChatPrompt chat{.messages = *fields.find("messages")};
  if (const Json* tools = fields.find("tools")) chat.tools = *tools;
  if (const Json* variables = fields.find("chat_template_kwargs")) chat.variables = *variables;
  read_chat_style(fields, chat);
  bool special = fields.flag("add_special_tokens", false);
  TRY(fields.finish());
  std::string text = TRY(render_chat(context.llm, std::move(chat)));
  return Json(TRY(tokenizer_of(context.llm)->encode(text, {.add_special_tokens = special})));
}

// llama.cpp's with_pieces: tokens with their text, as a list of bytes for partial characters.
Json with_pieces(const Tokenizer& tokenizer, const Json& tokens) {
  Json list = Json::array();
  for (const Json& id : tokens) {
    std::string bytes = tokenizer.token_bytes(id.get<TokenId>());
    Json piece = bytes;
    if (valid_text(bytes) != bytes) {
      piece = Json::array();
      for (unsigned char byte : bytes) piece.push_back(byte);
    }
    list.push_back({{"id", id}, {"piece", std::move(piece)}});
  }
  return list;
}

struct AbortRequest {
  std::vector<std::string> rids;
  bool all = false;
};

Parsed<AbortRequest> read_abort(const RequestContext&, const Json& body) {
  RequestFields fields(body);
  AbortRequest request{.rids = fields.strings("rid", kSequencesMax, kNameBytesMax),
                       .all = fields.flag("abort_all", false)};
  TRY(fields.finish());
  return request;
}

}  // namespace

// {prompt} as in SGLang and vLLM, or {content} as in llama.cpp. A list returns lists.
Parsed<Json> tokenize(const RequestContext& context, const Json& body) {
  const Tokenizer* tokenizer = TRY(find_tokenizer(context.llm));
  RequestFields fields(body);
  Json tokens = Json::array(), count;
  bool is_prompt = fields.find("prompt") != nullptr;
  const Json* text = is_prompt ? fields.find("prompt") : fields.find("content");
  if (text == nullptr && fields.find("messages") != nullptr) {
    tokens = TRY(tokenize_chat(context, fields));
    count = tokens.size();
  } else {
    EncodeOptions options{.add_special_tokens = is_prompt ? fields.flag("add_special_tokens", true)
                                                          : fields.flag("add_special", false),
                          .parse_special = fields.flag("parse_special", true)};
    bool pieces = fields.flag("with_pieces", false);
    if (text == nullptr) fields.fail("prompt", " is missing");
    TRY(fields.finish());
    auto encode = [&](const Json& one) -> Result<Json> {
      if (!one.is_string()) return invalid_argument("prompt is {}, not a string", show(one));
      Json ids = TRY(tokenizer->encode(one.get_ref<const std::string&>(), options));
      return pieces ? with_pieces(*tokenizer, ids) : ids;
    };
    if (text->is_array()) {
      count = Json::array();
      for (const Json& one : *text) {
        tokens.push_back(TRY(encode(one)));
        count.push_back(tokens.back().size());
      }
    } else {
      tokens = TRY(encode(*text));
      count = tokens.size();
    }
  }
  return Json{{"tokens", std::move(tokens)},
              {"count", std::move(count)},
              {"max_model_len", context.llm.info().context_length_tokens}};
}

// Returns the text under the names that SGLang, vLLM and llama.cpp use.
Parsed<Json> detokenize(const RequestContext& context, const Json& body) {
  const Tokenizer* tokenizer = TRY(find_tokenizer(context.llm));
  RequestFields fields(body);
  bool skip = fields.flag("skip_special_tokens", true);
  const Json* tokens = fields.find("tokens");
  if (tokens == nullptr) fields.fail("tokens", " is missing");
  TRY(fields.finish());
  auto tokens_max = as_size(context.llm.config().prompt_tokens_max);
  int64_t vocabulary = context.llm.info().vocabulary;
  auto decode = [&](const Json& list) -> Result<std::string> {
    std::vector<TokenId> ids = TRY(read_token_ids(list, "tokens", tokens_max));
    for (TokenId id : ids) {
      if (id < vocabulary) continue;
      return invalid_argument("tokens: {} is outside the vocabulary of {} tokens", id, vocabulary);
    }
    return tokenizer->decode(ids, skip);
  };
  Json text;
  if (tokens->is_array() && !tokens->empty() && tokens->front().is_array()) {
    for (const Json& list : *tokens) text.push_back(TRY(decode(list)));
  } else {
    text = TRY(decode(*tokens));
  }
  return Json{{"text", text}, {"prompt", text}, {"content", text}};
}

void handle_tokenize(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), tokenize);
}

void handle_detokenize(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), detokenize);
}

void handle_abort_request(Service& service, HttpRequest request, ResponderPtr responder) {
  read_on_worker<AbortRequest>(service, std::move(request), responder, read_abort,
                               [&service, responder](const AbortRequest& abort) {
                                 if (abort.all) service.abort_all();
                                 for (const std::string& rid : abort.rids) service.abort(rid);
                                 responder->respond(200, std::string());
                               });
}

}  // namespace banyan
