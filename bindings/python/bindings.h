// Shared by the files of the module: errors as Python exceptions, and results as SGLang's dicts.
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

// Raises ValueError for invalid or unsupported values, LookupError for what does not exist, OSError
// for I/O errors, and RuntimeError for limits and cancelled calls.
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
  bool sampled = false;  // a field of `sampling` was given
};

// Reads sampling parameters under SGLang's names. None leaves a field unchanged; an unknown name is
// a ValueError.
Params read_params(const py::dict& given, const SamplingParams& defaults);

// {"type": "stop", "matched": ...} and so on; None while running. `matched` may be None.
py::object finish_reason(FinishReason finish, py::object matched, int64_t tokens);
// [(logprob, id, None), ...]
py::list logprob_list(const std::vector<TokenLogprob>& logprobs);

// Where programs run; opaque to Python.
struct BackendHandle {
  std::shared_ptr<Backend> backend;
  SamplingParams sampling;  // defaults that a gen's parameters override
};

// The parts of the module, one per file.
void define_engine(py::module_& module);
void define_programs(py::module_& module);

}  // namespace banyan::python
