#include "engine/step_times.h"

#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr size_t kTerms = 3;  // steps, rows of prompts, rows of decoding
using Terms = std::array<double, kTerms>;

// Solves the normal equations for the terms of `used`; the others are 0. Nothing if they are
// underdetermined.
class LeastSquares {
 public:
  // sum of terms x solution = 1, for a relative error.
  void add(const Terms& terms) {
    for (size_t i = 0; i < kTerms; ++i) {
      for (size_t j = 0; j < kTerms; ++j) matrix_[i][j] += terms[i] * terms[j];
      right_[i] += terms[i];
    }
    ++count_;
  }

  std::optional<Terms> solve(const std::array<bool, kTerms>& used) const {
    constexpr double kPivotMin = 1e-9;  // of the diagonal; smaller pivots are rounding errors
    auto a = matrix_;
    Terms b = right_;
    for (size_t i = 0; i < kTerms; ++i) {
      if (!used[i]) continue;
      if (a[i][i] <= kPivotMin * matrix_[i][i]) return std::nullopt;
      for (size_t k = 0; k < kTerms; ++k) {
        if (!used[k] || k == i) continue;
        double factor = a[k][i] / a[i][i];
        for (size_t j = 0; j < kTerms; ++j) a[k][j] -= factor * a[i][j];
        b[k] -= factor * b[i];
      }
    }
    Terms solution = {};
    for (size_t i = 0; i < kTerms; ++i) {
      if (used[i]) solution[i] = b[i] / a[i][i];
    }
    return solution;
  }

  // Sum of the squared relative errors.
  double loss(const Terms& x) const {
    double loss = count_;
    for (size_t i = 0; i < kTerms; ++i) {
      loss -= 2 * x[i] * right_[i];
      for (size_t j = 0; j < kTerms; ++j) loss += x[i] * matrix_[i][j] * x[j];
    }
    return std::max(0.0, loss);
  }

 private:
  std::array<Terms, kTerms> matrix_ = {};
  Terms right_ = {};
  double count_ = 0;
};

Status check(const StepsObserved& o) {
  if (o.steps > 0 && o.prompt_rows >= 0 && o.decode_rows >= 0 && o.time_s > 0) return {};
  return invalid_argument("step times: {} steps with {} prompt rows and {} decode rows in {} s",
                          o.steps, o.prompt_rows, o.decode_rows, o.time_s);
}

}  // namespace

// Three terms have eight subsets. The best solution without a negative term is the least of theirs.
Result<FittedSteps> fit_step_times(std::span<const StepsObserved> observed) {
  LeastSquares system;
  for (const StepsObserved& o : observed) {
    TRY(check(o));
    system.add({static_cast<double>(o.steps) / o.time_s,
                static_cast<double>(o.prompt_rows) / o.time_s,
                static_cast<double>(o.decode_rows) / o.time_s});
  }
  if (!system.solve({true, true, true})) {
    return invalid_argument(
        "{} measured batches cannot separate the times of a step, a prompt row and a decode row: "
        "measure two batch sizes, with output",
        observed.size());
  }
  std::optional<Terms> best;
  for (unsigned set = 1; set < 1u << kTerms; ++set) {
    std::optional<Terms> x = system.solve({(set & 1) != 0, (set & 2) != 0, (set & 4) != 0});
    if (!x || (*x)[0] < 0 || (*x)[1] < 0 || (*x)[2] < 0) continue;
    if (!best || system.loss(*x) < system.loss(*best)) best = x;
  }
  // A single term is positive.
  const auto& [step_s, prompt_row_s, decode_row_s] = *best;
  return FittedSteps{
      .times = {.step_s = step_s, .prompt_row_s = prompt_row_s, .decode_row_s = decode_row_s},
      .error = std::sqrt(system.loss(*best) / observed.size())};
}

Json to_json(const FittedSteps& fit) {
  return {{"step_ms", fit.times.step_s * 1e3},
          {"row_us", fit.times.prompt_row_s * 1e6},
          {"decode_row_us", fit.times.decode_row_s * 1e6},
          {"error", fit.error}};
}

Result<StepTimes> read_step_times(const std::string& path) {
  constexpr size_t kBytesMax = size_t{1} << 20;
  Json json = TRY(parse_json(TRY(read_file(path, kBytesMax)), path));
  if (!json.is_object() || !json.contains("step_times") || !json["step_times"].is_object()) {
    return corrupt(
        "{}: there is no object \"step_times\"; `banyan bench one-batch --batch-size 1,8 --json` "
        "writes one",
        quote(path));
  }
  StepTimes times;
  auto read = [&](const char* key, double unit_s, double& seconds) -> Status {
    const Json& object = json["step_times"];
    auto found = object.find(key);
    if (found == object.end() || !found->is_number()) {
      return corrupt("{}: step_times.{} is not a number", quote(path), key);
    }
    seconds = found->get<double>() * unit_s;
    return {};
  };
  TRY(read("step_ms", 1e-3, times.step_s));
  TRY(read("row_us", 1e-6, times.prompt_row_s));
  TRY(read("decode_row_us", 1e-6, times.decode_row_s));
  TRY(times.validate());
  return times;
}

}  // namespace banyan
