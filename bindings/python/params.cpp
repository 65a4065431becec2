#include <functional>
#include <map>
#include <optional>

#include "bindings.h"

namespace banyan::python {
namespace {

using namespace pybind11::literals;

// Where the parameters go: fields of a TextRequest or of GenOptions.
struct Target {
  SamplingParams& sampling;
  int64_t& max_new_tokens;
  int64_t& min_new_tokens;
  std::vector<std::string>& stop;
  std::vector<TokenId>& stop_token_ids;
  bool& ignore_eos;
  bool& skip_special_tokens;
  std::optional<GrammarSource>& grammar;
  bool* keep_stop = nullptr;
  bool sampled = false;  // a parameter of `sampling` was given
};

template <class Options>
Target target_of(Options& options, SamplingParams& sampling) {
  return {sampling,
          options.max_new_tokens,
          options.min_new_tokens,
          options.stop,
          options.stop_token_ids,
          options.ignore_eos,
          options.skip_special_tokens,
          options.grammar};
}

using Setter = std::function<void(Target&, py::handle)>;

template <class T>
Setter sampling(T SamplingParams::* field) {
  return [field](Target& target, py::handle value) {
    target.sampling.*field = value.cast<T>();
    target.sampled = true;
  };
}

Setter grammar(GrammarSource::Kind kind) {
  return [kind](Target& target, py::handle value) {
    auto text = value.cast<std::string>();
    if (text.empty()) return;
    if (target.grammar) {
      throw py::value_error("regex, json_schema, ebnf and structural_tag exclude each other");
    }
    bool any = kind == GrammarSource::Kind::kJsonSchema && text == "$$ANY$$";  // SGLang's word
    target.grammar = any ? GrammarSource{.kind = GrammarSource::Kind::kJsonObject}
                         : GrammarSource{.kind = kind, .text = std::move(text)};
  };
}

void set_top_k(Target& target, py::handle value) {
  int top_k = value.cast<int>();
  target.sampling.top_k = top_k == -1 ? 0 : top_k;  // the other spelling of "all"
  target.sampled = true;
}

void set_stop(Target& target, py::handle value) {
  if (py::isinstance<py::str>(value)) {
    target.stop = {value.cast<std::string>()};
  } else {
    target.stop = value.cast<std::vector<std::string>>();
  }
}

void set_logit_bias(Target& target, py::handle value) {
  target.sampling.logit_bias.clear();
  for (auto [token, bias] : value.cast<py::dict>()) {
    target.sampling.logit_bias.emplace_back(py::int_(py::reinterpret_borrow<py::object>(token)),
                                            bias.cast<float>());
  }
  target.sampled = true;
}

const std::map<std::string, Setter, std::less<>>& setters() {
  using Kind = GrammarSource::Kind;
  using S = SamplingParams;
  static const std::map<std::string, Setter, std::less<>> kSetters = {
      {"temperature", sampling(&S::temperature)},
      {"top_p", sampling(&S::top_p)},
      {"top_k", set_top_k},
      {"min_p", sampling(&S::min_p)},
      {"frequency_penalty", sampling(&S::frequency_penalty)},
      {"presence_penalty", sampling(&S::presence_penalty)},
      {"repetition_penalty", sampling(&S::repetition_penalty)},
      {"sampling_seed", sampling(&S::seed)},
      {"logit_bias", set_logit_bias},
      {"max_new_tokens", [](Target& t, py::handle v) { t.max_new_tokens = v.cast<int64_t>(); }},
      {"min_new_tokens", [](Target& t, py::handle v) { t.min_new_tokens = v.cast<int64_t>(); }},
      {"stop", set_stop},
      {"stop_token_ids",
       [](Target& t, py::handle v) { t.stop_token_ids = v.cast<std::vector<TokenId>>(); }},
      {"ignore_eos", [](Target& t, py::handle v) { t.ignore_eos = v.cast<bool>(); }},
      {"skip_special_tokens",
       [](Target& t, py::handle v) { t.skip_special_tokens = v.cast<bool>(); }},
      {"no_stop_trim",
       [](Target& t, py::handle v) {
         if (t.keep_stop != nullptr) {
           *t.keep_stop = v.cast<bool>();
         } else if (v.cast<bool>()) {
           throw py::value_error("no_stop_trim is not supported in programs");
         }
       }},
      {"spaces_between_special_tokens",
       [](Target&, py::handle v) {
         if (!v.cast<bool>()) throw py::value_error("only True is supported");
       }},
      {"regex", grammar(Kind::kRegex)},
      {"json_schema", grammar(Kind::kJsonSchema)},
      {"ebnf", grammar(Kind::kEbnf)},
      {"structural_tag", grammar(Kind::kStructuralTag)},
  };
  return kSetters;
}

void read(const py::dict& params, Target& target) {
  for (auto [key, value] : params) {
    auto name = key.cast<std::string>();
    auto setter = setters().find(name);
    if (setter == setters().end()) {
      throw py::value_error("the sampling parameter " + name + " is not supported");
    }
    if (value.is_none()) continue;
    try {
      setter->second(target, value);
    } catch (const py::cast_error&) {
      throw py::value_error(name + " is " + py::repr(value).cast<std::string>() +
                            ", which is of the wrong type or out of range");
    }
  }
  value_or_raise(target.sampling.validate());
}

}  // namespace

void raise(const Error& error) {
  PyObject* type = PyExc_RuntimeError;
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
    case ErrorCode::kCorrupt:
      type = PyExc_ValueError;
      break;
    case ErrorCode::kNotFound:
      type = PyExc_LookupError;
      break;
    case ErrorCode::kIo:
      type = PyExc_OSError;
      break;
    case ErrorCode::kExhausted:
    case ErrorCode::kCancelled:
      break;
  }
  PyErr_SetString(type, error.message.c_str());
  throw py::error_already_set();
}

void read_params(const py::dict& params, TextRequest& request) {
  Target target = target_of(request, request.sampling);
  target.keep_stop = &request.keep_stop;
  read(params, target);
}

GenOptions read_gen(const py::dict& params, const SamplingParams& defaults) {
  GenOptions options;
  SamplingParams sampling = defaults;
  Target target = target_of(options, sampling);
  read(params, target);
  if (target.sampled) options.sampling = std::move(sampling);
  return options;
}

py::object finish_reason(FinishReason finish, py::object matched, int64_t tokens) {
  switch (finish) {
    case FinishReason::kNone:
      return py::none();
    case FinishReason::kStop:
      return py::dict("type"_a = "stop", "matched"_a = std::move(matched));
    case FinishReason::kLength:
      return py::dict("type"_a = "length", "length"_a = tokens);
    default:
      return py::dict("type"_a = "abort", "message"_a = to_string(finish));
  }
}

py::list logprob_list(const std::vector<TokenLogprob>& logprobs) {
  py::list list(logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i) {
    list[i] = py::make_tuple(logprobs[i].logprob, logprobs[i].token, py::none());
  }
  return list;
}

}  // namespace banyan::python
