#include <functional>
#include <map>
#include <optional>

#include "bindings.h"

namespace banyan::python {
namespace {

using namespace pybind11::literals;

using Setter = std::function<void(Params&, py::handle)>;

template <class T>
Setter sampling(T SamplingParams::* field) {
  return [field](Params& params, py::handle value) {
    params.sampling.*field = value.cast<T>();
    params.sampled = true;
  };
}

template <class T>
Setter option(T GenerationOptions::* field) {
  return [field](Params& params, py::handle value) { params.options.*field = value.cast<T>(); };
}

Setter grammar(GrammarSource::Kind kind) {
  return [kind](Params& params, py::handle value) {
    auto text = value.cast<std::string>();
    if (text.empty()) return;
    std::optional<GrammarSource>& grammar = params.options.grammar;
    if (grammar) {
      throw py::value_error("give only one of regex, json_schema, ebnf and structural_tag");
    }
    // SGLang's name for any JSON
    bool any = kind == GrammarSource::Kind::kJsonSchema && text == "$$ANY$$";
    grammar = any ? GrammarSource{.kind = GrammarSource::Kind::kJsonObject}
                  : GrammarSource{.kind = kind, .text = std::move(text)};
  };
}

void set_top_k(Params& params, py::handle value) {
  int top_k = value.cast<int>();
  params.sampling.top_k = top_k == -1 ? 0 : top_k;  // -1 also means all
  params.sampled = true;
}

// A string, or a list of strings.
Setter texts(std::vector<std::string> GenerationOptions::* field) {
  return [field](Params& params, py::handle value) {
    if (py::isinstance<py::str>(value)) {
      params.options.*field = {value.cast<std::string>()};
    } else {
      params.options.*field = value.cast<std::vector<std::string>>();
    }
  };
}

void set_dry_sequence_breakers(Params& params, py::handle value) {
  params.sampling.dry_sequence_breakers = value.cast<std::vector<std::string>>();
  params.sampled = true;
}

void set_logit_bias(Params& params, py::handle value) {
  params.sampling.logit_bias.clear();
  for (auto [token, bias] : value.cast<py::dict>()) {
    params.sampling.logit_bias.emplace_back(py::int_(py::reinterpret_borrow<py::object>(token)),
                                            bias.cast<float>());
  }
  params.sampled = true;
}

const std::map<std::string, Setter, std::less<>>& setters() {
  using Kind = GrammarSource::Kind;
  using S = SamplingParams;
  using G = GenerationOptions;
  static const std::map<std::string, Setter, std::less<>> kSetters = {
      {"temperature", sampling(&S::temperature)},
      {"top_p", sampling(&S::top_p)},
      {"top_k", set_top_k},
      {"min_p", sampling(&S::min_p)},
      {"typical_p", sampling(&S::typical_p)},
      {"xtc_probability", sampling(&S::xtc_probability)},
      {"xtc_threshold", sampling(&S::xtc_threshold)},
      {"frequency_penalty", sampling(&S::frequency_penalty)},
      {"presence_penalty", sampling(&S::presence_penalty)},
      {"repetition_penalty", sampling(&S::repetition_penalty)},
      {"repeat_last_n", sampling(&S::repeat_last_n)},
      {"dry_multiplier", sampling(&S::dry_multiplier)},
      {"dry_base", sampling(&S::dry_base)},
      {"dry_allowed_length", sampling(&S::dry_allowed_length)},
      {"dry_penalty_last_n", sampling(&S::dry_penalty_last_n)},
      {"dry_sequence_breakers", set_dry_sequence_breakers},
      {"sampling_seed", sampling(&S::seed)},
      {"logit_bias", set_logit_bias},
      {"max_new_tokens", option(&G::max_new_tokens)},
      {"min_new_tokens", option(&G::min_new_tokens)},
      {"stop", texts(&G::stop)},
      {"stop_regex", texts(&G::stop_regex)},
      {"stop_token_ids", option(&G::stop_token_ids)},
      {"ignore_eos", option(&G::ignore_eos)},
      {"skip_special_tokens", option(&G::skip_special_tokens)},
      {"no_stop_trim", option(&G::keep_stop)},
      {"priority", option(&G::priority)},
      {"cache_salt", option(&G::cache_salt)},
      {"extra_key", option(&G::extra_key)},
      {"lora_path", option(&G::adapter)},
      {"spaces_between_special_tokens",
       [](Params&, py::handle v) {
         if (!v.cast<bool>()) throw py::value_error("only True is supported");
       }},
      {"regex", grammar(Kind::kRegex)},
      {"json_schema", grammar(Kind::kJsonSchema)},
      {"ebnf", grammar(Kind::kEbnf)},
      {"structural_tag", grammar(Kind::kStructuralTag)},
  };
  return kSetters;
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

Params read_params(const py::dict& given, const SamplingParams& defaults) {
  Params params{.options = {}, .sampling = defaults};
  for (auto [key, value] : given) {
    auto name = key.cast<std::string>();
    auto setter = setters().find(name);
    if (setter == setters().end()) {
      throw py::value_error("the sampling parameter " + name + " is not supported");
    }
    if (value.is_none()) continue;
    try {
      setter->second(params, value);
    } catch (const py::cast_error&) {
      throw py::value_error(name + " is " + py::repr(value).cast<std::string>() +
                            ", which is of the wrong type or out of range");
    }
  }
  value_or_raise(params.sampling.validate());
  return params;
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
