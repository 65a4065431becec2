// What the files of the module share: errors as Python's exceptions, results as SGLang's dicts.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "banyan/llm.h"
#include "banyan/program.h"

namespace banyan::python {

namespace py = pybind11;

// Raises: ValueError for what the caller or a file got wrong or is not supported, LookupError for
// what does not exist, OSError, and RuntimeError for limits and cancelled calls.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}
inline void value_or_raise(const Status& status) {
  if (!status) raise(status.error());
}

struct Params {
  GenerationOptions options;
  SamplingParams sampling;
  bool sampled = false;  // a parameter of `sampling` was given
};

// Sampling parameters by SGLang's names. None leaves a field as it is; an unknown name is a
// ValueError.
Params read_params(const py::dict& given, const SamplingParams& defaults);

// {"type": "stop", "matched": ...} and the like; None while it runs. `matched` may be None.
py::object finish_reason(FinishReason finish, py::object matched, int64_t tokens);
// [(logprob, id, None), ...]
py::list logprob_list(const std::vector<TokenLogprob>& logprobs);

// Where programs run; Backend itself is not for the outside to look into.
struct BackendHandle {
  std::shared_ptr<Backend> backend;
  SamplingParams sampling;  // what a gen's parameters change
};

// Each file's part of the module.
void define_engine(py::module_& module);
void define_programs(py::module_& module);

}  // namespace banyan::python
