// The engine, and requests that can be read while they run.
//
// No mutex here is held while acquiring the GIL, and none is waited for long while holding the GIL.
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <random>

#include "banyan/async_llm.h"
#include "banyan/options.h"
#include "bindings.h"

namespace banyan::python {
namespace {

using namespace pybind11::literals;

// Owns the model, and thus the engine, its requests and its backends.
class Core {
 public:
  explicit Core(std::unique_ptr<Llm> llm)
      : llm_(std::move(llm)), model_(std::make_shared<AsyncLlm>(*llm_)) {}

  const Llm& llm() const { return *llm_; }
  // Raises after shutdown().
  std::shared_ptr<AsyncLlm> model() {
    std::lock_guard lock(mutex_);
    if (!model_) raise({ErrorCode::kCancelled, "the engine is shut down"});
    return model_;
  }
  void shutdown() {
    std::shared_ptr<AsyncLlm> model;
    std::lock_guard lock(mutex_);
    model.swap(model_);
  }

 private:
  std::unique_ptr<Llm> llm_;
  std::mutex mutex_;
  std::shared_ptr<AsyncLlm> model_;  // declared after what it uses
};

// One request. Its sinks are called on the model's thread; everything else on Python's.
class Request {
 public:
  Request(std::shared_ptr<Core> core, const TextRequest& request) : core_(std::move(core)) {
    want_logprobs_ = request.options.logprobs;
    want_prompt_logprobs_ = request.options.prompt_logprobs_begin.has_value();
    want_top_ = request.options.top_logprobs > 0;
    want_chosen_ = !request.options.logprob_token_ids.empty();
  }
  ~Request() {
    if (!notify_) return;
    py::gil_scoped_acquire gil;
    notify_.reset();
  }

  static std::shared_ptr<Request> start(std::shared_ptr<Core> core, const TextRequest& request,
                                        py::object notify) {
    std::shared_ptr<AsyncLlm> model = core->model();
    auto self = std::make_shared<Request>(std::move(core), request);
    if (!notify.is_none()) self->notify_ = std::move(notify);
    py::gil_scoped_release unlocked;
    AsyncLlm::Cancel cancel = model->generate(
        request, {.event = [self](const TextEvent& event) { self->take(event); },
                  .done = [self](Result<Generation> g) { self->end(std::move(g)); }});
    {
      std::lock_guard lock(self->mutex_);
      // The function belongs to the model, which may be destroyed before this request.
      self->cancel_ = [model = std::weak_ptr(model), cancel = std::move(cancel)] {
        if (auto alive = model.lock()) cancel();
      };
    }
    // This may be the last reference, and the model's threads may need the GIL and the mutex.
    model.reset();
    return self;
  }

  // Waits until more than `seen` steps have happened. Returns their number; -1 at the end.
  int64_t wait(int64_t seen) {
    using namespace std::chrono_literals;
    while (true) {
      {
        py::gil_scoped_release unlocked;
        std::unique_lock lock(mutex_);
        bool changed = changed_.wait_for(lock, 100ms, [&] { return done_ || steps_ > seen; });
        if (changed) return done_ ? -1 : steps_;
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }
  bool done() {
    std::lock_guard lock(mutex_);
    return done_;
  }
  void cancel() {
    py::gil_scoped_release unlocked;
    std::unique_lock lock(mutex_);
    AsyncLlm::Cancel cancel = cancel_;
    lock.unlock();
    if (cancel) cancel();
  }

  void keep_dimensions(int64_t dimensions) { dimensions_ = dimensions; }
  // The f32 values of a prompt's embedding, once it is done.
  py::bytes embedding() {
    std::lock_guard lock(mutex_);
    if (error_) raise(*error_);
    std::vector<float> values = normalised(embedding_, dimensions_);
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  // The output so far, in SGLang's format.
  py::dict result(bool whole) {
    std::lock_guard lock(mutex_);
    if (error_) raise(*error_);
    py::dict meta("finish_reason"_a = finish(), "prompt_tokens"_a = prompt_tokens_,
                  "completion_tokens"_a = ids_.size(), "cached_tokens"_a = cached_tokens_);
    if (!notes_.empty()) meta["warnings"] = notes_;
    if (want_logprobs_) {
      add_side(meta, "output", output_);
      add_side(meta, "input", prompt_);
    }
    py::dict result("text"_a = py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
                        text_.data(), static_cast<Py_ssize_t>(text_.size()), "replace")),
                    "output_ids"_a = ids_, "meta_info"_a = std::move(meta));
    if (whole) result["prompt_ids"] = prompt_ids_;
    return result;
  }

 private:
  struct Side {
    std::vector<TokenLogprob> tokens;
    std::vector<std::vector<TokenLogprob>> top, chosen;

    void add(const TokenEvent& event) {
      tokens.push_back({event.token, event.logprob});
      top.emplace_back(event.top.begin(), event.top.end());
      chosen.emplace_back(event.chosen.begin(), event.chosen.end());
    }
  };

  void take(const TextEvent& event) {
    {
      std::lock_guard lock(mutex_);
      const TokenEvent& token = event.token;
      if (want_logprobs_ && token.has_token && token.from_prompt) prompt_.add(token);
      if (event.counted) {
        ids_.push_back(token.token);
        if (want_logprobs_) output_.add(token);
      }
      text_ += event.text;
      cached_tokens_ = std::max(cached_tokens_, token.cached_tokens);
      if (event.text.empty()) return;
      ++steps_;
      changed_.notify_all();
    }
    notify();
  }

  void end(Result<Generation> generation) {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
      if (generation) {
        prompt_ids_ = std::move(generation->prompt_ids);
        prompt_tokens_ = std::ssize(prompt_ids_);
        ids_ = std::move(generation->output_ids);
        cached_tokens_ = generation->cached_tokens;
        embedding_ = std::move(generation->embedding);
        notes_ = std::move(generation->grammar_notes);
        finish_ = generation->finish;
        matched_text_ = std::move(generation->matched_stop_text);
        matched_token_ = generation->matched_stop_token;
      } else {
        error_ = generation.error();
      }
      changed_.notify_all();
    }
    notify();
  }

  // An exception here, from a closed event loop, has nowhere to go.
  void notify() {
    if (!notify_) return;
    py::gil_scoped_acquire gil;
    try {
      (*notify_)();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a request's notification");
    }
  }

  py::object finish() const {
    py::object matched = py::none();
    if (matched_text_) matched = py::cast(*matched_text_);
    if (!matched_text_ && matched_token_) matched = py::cast(*matched_token_);
    return finish_reason(finish_, std::move(matched), std::ssize(ids_));
  }

  void add_side(py::dict& meta, const std::string& name, const Side& side) const {
    bool input = name == "input";
    py::list tokens = logprob_list(side.tokens);
    auto lists = [&](const std::vector<std::vector<TokenLogprob>>& rows) {
      py::list list;
      for (const auto& row : rows) list.append(logprob_list(row));
      return list;
    };
    py::list top = lists(side.top), chosen = lists(side.chosen);
    // A prompt's first token has no logprob; the engine does not report it.
    if (input && want_prompt_logprobs_ && done_ && side.tokens.size() + 1 == prompt_ids_.size()) {
      tokens.insert(0, py::make_tuple(py::none(), prompt_ids_[0], py::none()));
      top.insert(0, py::none());
      chosen.insert(0, py::none());
    }
    meta[py::str(name + "_token_logprobs")] = tokens;
    if (want_top_) meta[py::str(name + "_top_logprobs")] = top;
    if (want_chosen_) meta[py::str(name + "_token_ids_logprobs")] = chosen;
    std::string floats;  // accessed through the buffer protocol
    for (const TokenLogprob& token : side.tokens) {
      floats.append(reinterpret_cast<const char*>(&token.logprob), sizeof token.logprob);
    }
    meta[py::str(name + "_logprobs")] = py::bytes(floats);
  }

  const std::shared_ptr<Core> core_;
  bool want_logprobs_ = false, want_prompt_logprobs_ = false;
  bool want_top_ = false, want_chosen_ = false;
  std::optional<py::object> notify_;

  std::mutex mutex_;
  std::condition_variable changed_;
  AsyncLlm::Cancel cancel_;
  int64_t steps_ = 0;
  bool done_ = false;
  std::optional<Error> error_;
  std::string text_;
  std::vector<TokenId> ids_, prompt_ids_;
  int64_t prompt_tokens_ = 0, cached_tokens_ = 0;
  Side prompt_, output_;
  std::vector<float> embedding_;
  int64_t dimensions_ = 0;  // to return of it; 0: all
  FinishReason finish_ = FinishReason::kNone;
  std::optional<std::string> matched_text_;
  std::optional<TokenId> matched_token_;
  std::vector<std::string> notes_;
};

class Engine {
 public:
  explicit Engine(const std::vector<std::string>& arguments) {
    py::gil_scoped_release unlocked;
    Result<EngineConfig> config = parse_engine_options(arguments);
    Result<std::unique_ptr<Llm>> llm =
        config ? Llm::load(*config) : std::unexpected(config.error());
    py::gil_scoped_acquire locked;
    core_ = std::make_shared<Core>(value_or_raise(std::move(llm)));
  }

  // Must not be left to the last request, whose end is reported on a thread that dies with the
  // model.
  ~Engine() { shutdown(); }

  std::shared_ptr<Request> submit(const py::object& prompt, const py::dict& params,
                                  const py::dict& logprobs, uint32_t sample, py::object notify) {
    TextRequest request = read_prompt(prompt);
    SamplingParams defaults = core_->llm().recommended_sampling();
    defaults.seed = std::random_device{}();
    Params read = read_params(params, defaults);
    request.options = std::move(read.options);
    request.sampling = std::move(read.sampling);
    request.sampling.sample_index = sample;
    if (!logprobs.empty()) {
      request.options.logprobs = true;
      request.options.top_logprobs = logprobs["top"].cast<int>();
      request.options.logprob_token_ids = logprobs["ids"].cast<std::vector<TokenId>>();
      int64_t begin = logprobs["begin"].cast<int64_t>();
      if (begin < 0 && request.options.max_new_tokens == 0) begin = 0;
      if (begin >= 0) request.options.prompt_logprobs_begin = begin;
    }
    return Request::start(core_, request, std::move(notify));
  }

  // Its result has an embedding.
  std::shared_ptr<Request> embed(const py::object& prompt, int64_t dimensions) {
    Status valid = check_dimensions(dimensions, core_->llm().info().hidden);
    if (!valid) raise(valid.error());
    Pooling pooling = value_or_raise(core_->llm().pooling());
    TextRequest text = embedding_request(read_prompt(prompt), pooling);
    std::shared_ptr<Request> request = Request::start(core_, text, py::none());
    request->keep_dimensions(dimensions);
    return request;
  }

  std::vector<TokenId> encode(const std::string& text) const {
    auto tokens = [&] {
      py::gil_scoped_release unlocked;
      return core_->llm().encode(text);
    }();
    return value_or_raise(std::move(tokens));
  }

  BackendHandle backend() {
    auto backend = in_process_backend(core_->model());
    Backend* raw = backend.get();
    // Destroy the backend before the model.
    auto drop = [core = core_, backend = std::move(backend)](Backend*) mutable {
      backend.reset();
      core.reset();
    };
    return {std::shared_ptr<Backend>(raw, std::move(drop)), core_->llm().recommended_sampling()};
  }

  void flush_cache() {
    std::shared_ptr<AsyncLlm> model = core_->model();
    py::gil_scoped_release unlocked;
    model->flush_cache();
    model.reset();  // see Request::start
  }
  void shutdown() {
    py::gil_scoped_release unlocked;
    core_->shutdown();
  }

  py::dict info() const {
    const EngineInfo& info = core_->llm().info();
    return py::dict("model_path"_a = core_->llm().config().model_path,
                    "architecture"_a = info.architecture, "vocab_size"_a = info.vocabulary,
                    "context_length"_a = info.context_length_tokens, "kernels"_a = info.kernels,
                    "threads"_a = info.threads, "page_size"_a = info.page_size_tokens,
                    "max_total_num_tokens"_a = info.total_tokens_max,
                    "has_chat_template"_a = core_->llm().has_chat_template());
  }

 private:
  static TextRequest read_prompt(const py::object& prompt) {
    TextRequest request;
    if (py::isinstance<py::str>(prompt)) {
      request.text = prompt.cast<std::string>();
    } else {
      request.ids = prompt.cast<std::vector<TokenId>>();
      if (request.ids.empty()) throw py::value_error("input_ids contains an empty prompt");
    }
    return request;
  }

  std::shared_ptr<Core> core_;
};

}  // namespace

void define_engine(py::module_& module) {
  py::class_<Request, std::shared_ptr<Request>>(module, "Request")
      .def("wait", &Request::wait)
      .def("done", &Request::done, py::call_guard<py::gil_scoped_release>())
      .def("cancel", &Request::cancel)
      .def("embedding", &Request::embedding)
      .def("result", &Request::result);
  py::class_<Engine>(module, "Engine")
      .def(py::init<const std::vector<std::string>&>())
      .def("submit", &Engine::submit)
      .def("embed", &Engine::embed)
      .def("encode", &Engine::encode)
      .def("backend", &Engine::backend)
      .def("flush_cache", &Engine::flush_cache)
      .def("shutdown", &Engine::shutdown)
      .def("info", &Engine::info);
}

}  // namespace banyan::python
