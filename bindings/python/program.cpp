// States and interpreters of programs. Python functions drive states from their own threads.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include <pybind11/native_enum.h>

#include "bindings.h"

namespace banyan::python {
namespace {

using namespace pybind11::literals;

// Python handles signals on the main thread, which is the one that imports the module.
std::thread::id main_thread;

// Runs a blocking call on `state`. On the main thread Ctrl-C cancels the program.
template <class Wait>
auto interruptible(const State& state, Wait wait) -> decltype(wait()) {
  using namespace std::chrono_literals;
  if (std::this_thread::get_id() != main_thread) {
    py::gil_scoped_release unlocked;
    return wait();
  }
  auto result = std::async(std::launch::async, wait);
  while (true) {
    {
      py::gil_scoped_release unlocked;
      if (result.wait_for(50ms) == std::future_status::ready) return result.get();
    }
    if (PyErr_CheckSignals() == 0) continue;
    py::error_already_set interrupt;
    state.cancel();
    py::gil_scoped_release unlocked;
    result.wait();
    throw interrupt;
  }
}

std::string get(const State& state, const std::string& name) {
  Result<std::string> text = interruptible(state, [&] { return state.get(name); });
  if (!text && text.error().code == ErrorCode::kNotFound) throw py::key_error(name);
  return value_or_raise(std::move(text));
}

py::list token_list(const std::vector<GeneratedToken>& tokens, bool top) {
  py::list list;
  for (const GeneratedToken& token : tokens) {
    if (top) {
      list.append(logprob_list(token.top));
    } else {
      list.append(py::make_tuple(token.logprob, token.token, py::none()));
    }
  }
  return list;
}

void add_choices(py::dict& meta, const std::vector<WeighedChoice>& choices) {
  py::list weights, tokens, texts;
  for (const WeighedChoice& choice : choices) {
    texts.append(choice.text);
    weights.append(choice.weight);
    tokens.append(logprob_list(choice.tokens));
  }
  meta["choices"] = texts;
  meta["normalized_prompt_logprobs"] = weights;
  meta["input_token_logprobs"] = tokens;
}

py::dict info(const State& state, const std::string& name) {
  Result<CallInfo> got = interruptible(state, [&] { return state.info(name); });
  if (!got && got.error().code == ErrorCode::kNotFound) throw py::key_error(name);
  CallInfo info = value_or_raise(std::move(got));
  py::object matched = py::none();
  if (info.matched_stop) matched = py::cast(*info.matched_stop);
  py::dict meta("finish_reason"_a =
                    finish_reason(info.finish, std::move(matched), info.usage.completion_tokens),
                "prompt_tokens"_a = info.usage.prompt_tokens,
                "completion_tokens"_a = info.usage.completion_tokens,
                "cached_tokens"_a = info.usage.cached_tokens);
  if (!info.logprobs.empty()) {
    meta["output_token_logprobs"] = token_list(info.logprobs, false);
    meta["output_top_logprobs"] = token_list(info.logprobs, true);
  }
  if (!info.choices.empty()) add_choices(meta, info.choices);
  if (!info.notes.empty()) meta["warnings"] = info.notes;
  return meta;
}

py::list messages(const State& state) {
  py::list list;
  for (const ChatMessage& m :
       value_or_raise(interruptible(state, [&] { return state.messages(); }))) {
    list.append(py::dict("role"_a = m.role, "content"_a = m.content));
  }
  return list;
}

py::dict usage(const State& state) {
  CallUsage usage = state.usage();
  return py::dict(
      "calls"_a = usage.calls, "prompt_tokens"_a = usage.prompt_tokens,
      "cached_tokens"_a = usage.cached_tokens, "completion_tokens"_a = usage.completion_tokens,
      "calls_saved"_a = usage.calls_saved, "prompt_tokens_saved"_a = usage.prompt_tokens_saved);
}

// Runs programs on one backend. The destructor waits for them and does not hold the GIL.
class Programs {
 public:
  explicit Programs(BackendHandle backend)
      : backend_(std::move(backend)),
        interpreter_(std::make_unique<Interpreter>(backend_.backend)) {}
  ~Programs() { close(); }

  State state(bool stream, uint64_t sample, int64_t speculation_tokens) {
    RunOptions options{
        .stream = stream, .sample = sample, .speculation_tokens = speculation_tokens};
    if (!interpreter_) raise({ErrorCode::kCancelled, "the backend is shut down"});
    return interpreter_->state(std::move(options));
  }

  const SamplingParams& sampling() const { return backend_.sampling; }

  void close() {
    auto interpreter = std::move(interpreter_);
    auto backend = std::move(backend_.backend);
    py::gil_scoped_release unlocked;
    interpreter.reset();
    backend.reset();
  }

 private:
  BackendHandle backend_;
  std::unique_ptr<Interpreter> interpreter_;
};

void add_gen(State& state, const Programs& programs, const std::string& name,
             const py::dict& params, const py::dict& logprobs) {
  Params read = read_params(params, programs.sampling());
  if (!logprobs.empty()) {
    read.options.logprobs = true;
    read.options.top_logprobs = logprobs["top"].cast<int>();
  }
  std::optional<SamplingParams> sampling;
  if (read.sampled) sampling = std::move(read.sampling);
  py::gil_scoped_release unlocked;
  state += gen(name, std::move(read.options), std::move(sampling));
}

void define_state(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<State>(module, "State")
      .def("add_gen", &add_gen)
      .def(
          "add_text", [](State& s, std::string text) { s += std::move(text); }, Unlocked())
      .def(
          "add_select",
          [](State& s, std::string name, std::vector<std::string> choices, ChoiceMethod method) {
            s += select(std::move(name), std::move(choices), {.method = method});
          },
          Unlocked())
      .def(
          "add_score",
          [](State& s, std::string name, std::string text) {
            s += score(std::move(name), std::move(text));
          },
          Unlocked())
      .def(
          "role_begin", [](State& s, std::string role) { s += role_begin(std::move(role)); },
          Unlocked())
      .def(
          "role_end", [](State& s) { s += role_end(); }, Unlocked())
      .def(
          "add_image", [](State& s, std::string path) { s += image(std::move(path)); }, Unlocked())
      .def(
          "add_video", [](State& s, std::string path) { s += video(std::move(path)); }, Unlocked())
      .def("set", &State::set, Unlocked())
      .def("get", &get)
      .def("info", &info)
      .def(
          "has", [](const State& s, const std::string& name) { return s.has(name); }, Unlocked())
      .def("names", &State::names, Unlocked())
      .def("read_more",
           [](const State& s, const std::string& name, size_t offset) {
             std::string text =
                 value_or_raise(interruptible(s, [&] { return s.read_more(name, &offset); }));
             return py::make_tuple(std::move(text), offset);
           })
      .def(
          "text",
          [](const State& s) { return value_or_raise(interruptible(s, [&] { return s.text(); })); })
      .def("messages", &messages)
      .def("fork", &State::fork, Unlocked())
      .def("wait",
           [](const State& s) { value_or_raise(interruptible(s, [&] { return s.wait(); })); })
      .def(
          "error",
          [](const State& s) -> std::optional<std::string> {
            std::optional<Error> error = s.error();
            return error ? std::optional(error->message) : std::nullopt;
          },
          Unlocked())
      .def("release", &State::release, Unlocked())
      .def("cancel", &State::cancel, Unlocked())
      .def("usage", &usage);
}

BackendHandle connect(const std::string& url, const std::string& api, std::string model,
                      std::string api_key, std::string template_path, bool continues_answers) {
  ConnectOptions options{.api = api == "generate"      ? RemoteApi::kGenerate
                                : api == "completions" ? RemoteApi::kCompletions
                                                       : RemoteApi::kChat,
                         .model = std::move(model),
                         .api_key = std::move(api_key),
                         .template_path = std::move(template_path),
                         .continues_answers = continues_answers};
  Result<std::shared_ptr<Backend>> backend;
  {
    py::gil_scoped_release unlocked;
    backend = connect_backend(url, std::move(options));
  }
  return {value_or_raise(std::move(backend)), SamplingParams{}};
}

}  // namespace

void define_programs(py::module_& module) {
  main_thread = std::this_thread::get_id();
  py::native_enum<ChoiceMethod>(module, "ChoiceMethod", "enum.Enum")
      .value("token_length_normalized", ChoiceMethod::kTokenLengthNormalized)
      .value("greedy_token_selection", ChoiceMethod::kGreedyTokens)
      .value("unconditional_likelihood_normalized", ChoiceMethod::kUnconditionalNormalized)
      .finalize();
  py::class_<BackendHandle>(module, "Backend");
  module.def("connect", &connect);
  define_state(module);
  py::class_<Programs>(module, "Programs")
      .def(py::init<BackendHandle>())
      .def("state", &Programs::state)
      .def("close", &Programs::close);
}

}  // namespace banyan::python
