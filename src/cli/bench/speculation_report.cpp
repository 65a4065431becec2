#include "cli/bench/speculation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "engine/drafters/expected_tokens.h"

namespace banyan::cli {
namespace {

double quotient(double a, double b) {
  return b > 0 ? a / b : 0;
}

// Two-sided 95% quantiles of Student's t by degrees of freedom, within 1%.
double student_t(size_t freedom) {
  constexpr double kFew[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26};
  if (freedom <= std::size(kFew)) return kFew[freedom - 1];
  return 1.96 + 2.5 / freedom;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + values.size() / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

void append(const SpeculationRun& run, SpeculationRun& to) {
  to.steps.insert(to.steps.end(), run.steps.begin(), run.steps.end());
  for (size_t d = 0; d < run.drafters.size(); ++d) {
    const DrafterStats& from = run.drafters[d];
    DrafterStats& stats = to.drafters[d];
    stats.name = from.name;
    stats.drafts += from.drafts;
    stats.draft_tokens += from.draft_tokens;
    stats.accepted_tokens += from.accepted_tokens;
    stats.time_s += from.time_s;
  }
}

SpeculationRun joined(const std::vector<SpeculationRun>& runs) {
  SpeculationRun all;
  for (const SpeculationRun& run : runs) append(run, all);
  return all;
}

// All texts as one, pair by pair.
SpeculationResult joined(const std::vector<SpeculationResult>& results) {
  SpeculationResult all{.name = "all"};
  for (const SpeculationResult& result : results) {
    all.plain.resize(result.plain.size());
    all.drafted.resize(result.drafted.size());
    for (size_t i = 0; i < result.plain.size(); ++i) {
      append(result.plain[i], all.plain[i]);
      append(result.drafted[i], all.drafted[i]);
    }
  }
  return all;
}

std::vector<SpeculationResult> with_total(const std::vector<SpeculationResult>& results) {
  std::vector<SpeculationResult> rows = results;
  if (rows.size() > 1) rows.push_back(joined(results));
  return rows;
}

double acceptance_of(const SpeculationStep& sum) {
  return quotient(sum.accepted, sum.reached);
}

std::string interval(const Ratio& ratio) {
  if (!ratio.low) return "";
  return fmt::format(" [{:.2f}, {:.2f}]", *ratio.low, *ratio.high);
}

Json ratio_json(const Ratio& ratio) {
  Json json = {{"mean", ratio.mean}, {"low", nullptr}, {"high", nullptr}};
  if (ratio.low) json["low"] = *ratio.low, json["high"] = *ratio.high;
  return json;
}

Json run_json(const SpeculationRun& all, size_t runs) {
  SpeculationStep sum = all.sum();
  auto per_run = [&](auto value) { return static_cast<double>(value) / runs; };
  return {{"tokens", per_run(sum.tokens)},
          {"steps", per_run(std::ssize(all.steps))},
          {"tokens_per_s", all.tokens_per_s()},
          {"draft_tokens", per_run(sum.drafts)},
          {"accepted_tokens", per_run(sum.accepted)},
          {"drafting_us_per_sequence_and_step", 1e6 * quotient(sum.drafting_s, sum.sequences)}};
}

Json drafters_json(const SpeculationRun& all) {
  Json list = Json::array();
  for (const DrafterStats& drafter : all.drafters) {
    if (drafter.draft_tokens == 0) continue;
    list.push_back({{"name", drafter.name},
                    {"drafts", drafter.drafts},
                    {"draft_tokens", drafter.draft_tokens},
                    {"accepted_tokens", drafter.accepted_tokens},
                    {"time_s", drafter.time_s}});
  }
  return list;
}

std::string drafters_line(const SpeculationRun& all) {
  std::string line;
  for (const DrafterStats& drafter : all.drafters) {
    if (drafter.draft_tokens == 0) continue;
    line += fmt::format("{}{}: {} of {} accepted", line.empty() ? "" : "; ", drafter.name,
                        drafter.accepted_tokens, drafter.draft_tokens);
  }
  return line.empty() ? "" : fmt::format("drafts: {}\n", line);
}

// Steps of the most sequences that ran together.
template <class Visit>
void visit_full_steps(const std::vector<SpeculationRun>& runs, int64_t sequences, Visit visit) {
  for (const SpeculationRun& run : runs) {
    for (const SpeculationStep& step : run.steps) {
      if (step.sequences == sequences) visit(step);
    }
  }
}

}  // namespace

Ratio mean_ratio(const std::vector<double>& values) {
  Ratio ratio;
  double count = values.size();
  double mean = 0, squares = 0;
  for (double value : values) mean += std::log(value) / count;
  ratio.mean = std::exp(mean);
  if (values.size() < 2) return ratio;
  for (double value : values) squares += std::pow(std::log(value) - mean, 2);
  double width = student_t(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  ratio.low = std::exp(mean - width);
  ratio.high = std::exp(mean + width);
  return ratio;
}

Ratio speed_up(const SpeculationResult& result) {
  std::vector<double> ratios;
  for (size_t i = 0; i < result.plain.size(); ++i) {
    double plain = result.plain[i].tokens_per_s(), drafted = result.drafted[i].tokens_per_s();
    if (plain > 0 && drafted > 0) ratios.push_back(drafted / plain);
  }
  return mean_ratio(ratios);
}

double SpeculationModel::speed_up(const DraftedSteps& steps) const {
  auto n = static_cast<double>(sequences), drafts = static_cast<double>(steps.drafts);
  return expected_tokens(acceptance, drafts / n) * target_s / (steps.step_s + drafts * draft_s);
}

double SpeculationModel::predict(const SpeculationResult& result) const {
  double rate = acceptance_of(joined(result.drafted).sum());
  double tokens = 0, time_s = 0;
  double n = sequences;
  visit_full_steps(result.drafted, sequences, [&](const SpeculationStep& step) {
    auto like = std::ranges::find(by_drafts, step.drafts, &DraftedSteps::drafts);
    double drafts = step.drafts;
    tokens += n * expected_tokens(rate, drafts / n);
    time_s += like->step_s + drafts * draft_s;
  });
  return quotient(tokens * target_s, time_s * n);
}

SpeculationModel fit_speculation(const std::vector<SpeculationResult>& results) {
  SpeculationResult all = joined(results);
  SpeculationModel model;
  for (const SpeculationRun& run : all.plain) {
    for (const SpeculationStep& step : run.steps) {
      model.sequences = std::max(model.sequences, step.sequences);
    }
  }
  std::vector<double> plain;
  visit_full_steps(all.plain, model.sequences,
                   [&](const SpeculationStep& step) { plain.push_back(step.time_s); });
  model.target_s = median(std::move(plain));
  SpeculationStep sum = joined(all.drafted).sum();
  model.acceptance = acceptance_of(sum);
  model.draft_s = quotient(sum.drafting_s, sum.drafts);
  std::map<int64_t, std::pair<DraftedSteps, std::vector<double>>> groups;
  visit_full_steps(all.drafted, model.sequences, [&](const SpeculationStep& step) {
    auto& [steps, times] = groups[step.drafts];
    steps.drafts = step.drafts;
    ++steps.steps;
    steps.tokens += step.tokens;
    times.push_back(step.time_s - step.drafting_s);
  });
  for (auto& [drafts, group] : groups) {
    auto& [steps, times] = group;
    steps.step_s = median(std::move(times));
    steps.tokens /= steps.steps;
    model.by_drafts.push_back(steps);
  }
  return model;
}

std::string speculation_table(const std::vector<SpeculationResult>& results) {
  std::string text =
      fmt::format("{:<14}|{:>7} {:>6} {:>9} {:>8} {:>6} |{:>8} {:>8}  {}\n", "text", "tokens",
                  "steps", "per step", "drafted", "kept", "plain/s", "drafts/s", "ratio");
  for (const SpeculationResult& result : with_total(results)) {
    SpeculationRun plain = joined(result.plain), drafted = joined(result.drafted);
    SpeculationStep sum = drafted.sum();
    auto pairs = std::ssize(result.drafted);
    Ratio ratio = speed_up(result);
    text += fmt::format("{:<14}|{:>7} {:>6} {:>9.2f} {:>8} {:>6.2f} |{:>8.1f} {:>8.1f}  {:.2f}{}\n",
                        result.name, sum.tokens / pairs, std::ssize(drafted.steps) / pairs,
                        quotient(sum.tokens, sum.sequences), sum.drafts / pairs,
                        quotient(sum.accepted, sum.drafts), plain.tokens_per_s(),
                        drafted.tokens_per_s(), ratio.mean, interval(ratio));
  }
  SpeculationRun all = joined(joined(results).drafted);
  SpeculationStep sum = all.sum();
  return text + drafters_line(all) +
         fmt::format("proposing: {:.1f} us for each sequence and step\n",
                     1e6 * quotient(sum.drafting_s, sum.sequences));
}

std::string explanation_table(const std::vector<SpeculationResult>& results) {
  SpeculationModel model = fit_speculation(results);
  std::string text = fmt::format(
      "\nstep without drafts {:.2f} ms, proposing a token {:.3f} ms, acceptance {:.2f}\n"
      "{:>6} {:>6} {:>9} {:>7} {:>9} {:>9} | {:>9}\n",
      1e3 * model.target_s, 1e3 * model.draft_s, model.acceptance, "drafts", "steps", "step, ms",
      "times", "tokens", "predicted", "speed-up");
  double n = model.sequences;
  for (const DraftedSteps& steps : model.by_drafts) {
    double drafts = steps.drafts;
    text += fmt::format("{:>6} {:>6} {:>9.2f} {:>7.2f} {:>9.2f} {:>9.2f} | {:>9.2f}\n",
                        steps.drafts, steps.steps, 1e3 * steps.step_s,
                        quotient(steps.step_s, model.target_s), steps.tokens,
                        n * expected_tokens(model.acceptance, drafts / n), model.speed_up(steps));
  }
  text += fmt::format("\n{:<14} {:>10} {:>9} {:>9}\n", "speed-up", "acceptance", "predicted",
                      "measured");
  for (const SpeculationResult& result : with_total(results)) {
    text += fmt::format("{:<14} {:>10.2f} {:>9.2f} {:>9.2f}\n", result.name,
                        acceptance_of(joined(result.drafted).sum()), model.predict(result),
                        speed_up(result).mean);
  }
  return text;
}

Json speculation_json(const std::vector<SpeculationResult>& results) {
  SpeculationModel model = fit_speculation(results);
  Json texts = Json::array(), steps = Json::array();
  for (const SpeculationResult& result : with_total(results)) {
    SpeculationRun plain = joined(result.plain), drafted = joined(result.drafted);
    texts.push_back({{"name", result.name},
                     {"plain", run_json(plain, result.plain.size())},
                     {"drafted", run_json(drafted, result.drafted.size())},
                     {"acceptance", acceptance_of(drafted.sum())},
                     {"drafters", drafters_json(drafted)},
                     {"speed_up", ratio_json(speed_up(result))},
                     {"predicted_speed_up", model.predict(result)}});
  }
  for (const DraftedSteps& one : model.by_drafts) {
    steps.push_back({{"draft_tokens", one.drafts},
                     {"steps", one.steps},
                     {"step_s", one.step_s},
                     {"tokens", one.tokens},
                     {"predicted_speed_up", model.speed_up(one)}});
  }
  return {{"texts", std::move(texts)},
          {"model",
           {{"sequences", model.sequences},
            {"step_s", model.target_s},
            {"draft_s_per_token", model.draft_s},
            {"acceptance", model.acceptance},
            {"drafted_steps", std::move(steps)}}}};
}

}  // namespace banyan::cli
