// What a router reports at /metrics of its choices and its workers.
#include <string_view>
#include <vector>

#include "server/route/remote_generator.h"

namespace banyan {

std::vector<GeneratorFigure> RemoteGenerator::figures() const {
  std::vector<GeneratorFigure> all;
  auto total = [&](std::string_view name, std::string_view help, auto value) {
    all.push_back({name, help, true, static_cast<double>(value)});
  };
  auto gauge = [&](std::string_view name, std::string_view help, auto value) {
    all.push_back({name, help, false, static_cast<double>(value)});
  };
  WorkerChoice::Figures choice = choice_.figures();
  total("banyan:router_sent_prompt_tokens_total", "Prompt tokens sent to workers",
        counts_.sent_tokens);
  total("banyan:router_predicted_cached_tokens_total",
        "Of them, those that the router took for cached at the worker", counts_.predicted_tokens);
  total("banyan:router_cached_tokens_total", "Of them, those that were", counts_.cached_tokens);
  total("banyan:router_migrations_total", "Times that a request lost its worker and went on",
        counts_.migrations);
  total("banyan:router_retries_total", "Times that a request was refused and went to another",
        counts_.retries);
  total("banyan:router_poisoned_total", "Requests that several workers in a row ended of",
        counts_.poisoned);
  total("banyan:router_queue_timeouts_total", "Requests for which no worker had room in time",
        counts_.expired);
  gauge("banyan:router_waiting_requests", "Requests that wait for a worker", waiting_.size());
  total("banyan:router_decisions_total", "Choices of a worker", choice.decisions);
  total("banyan:router_decision_seconds_total", "Time of choosing", choice.decision_s);
  total("banyan:router_hashed_pages_total", "Pages of prompts whose keys were made",
        choice.hashed_pages);
  total("banyan:router_hashing_seconds_total", "Time of making them", choice.hashing_s);
  gauge("banyan:router_known_pages", "Pages in the map of who has what", choice.entries);
  gauge("banyan:router_map_bytes", "Memory of that map", choice.bytes);
  total("banyan:router_forgotten_pages_total", "Pages that the map had no room for",
        choice.evicted);
  total("banyan:router_event_gaps_total", "Times that events of a worker were missing",
        choice.gaps);
  total("banyan:router_event_streams_ended_total", "Times that a worker's events broke off",
        choice.reopened);
  gauge("banyan:router_announcing_workers", "Workers that tell what they have cached",
        choice.announcing);
  add_worker_figures(all);
  return all;
}

void RemoteGenerator::add_worker_figures(std::vector<GeneratorFigure>& all) const {
  auto each = [&](std::string_view name, std::string_view help, auto value_of) {
    for (const auto& worker : workers_) {
      if (!worker) continue;
      all.push_back(
          {name, help, false, static_cast<double>(value_of(*worker)), "worker", worker->url()});
    }
  };
  each("banyan:router_worker_ready", "1: it takes requests",
       [](const RemoteWorker& w) { return w.is_ready() ? 1 : 0; });
  each("banyan:router_worker_requests", "Requests of this router that run there",
       [](const RemoteWorker& w) { return w.in_flight; });
  each("banyan:router_worker_waiting_tokens", "Prompt tokens sent there and not answered yet",
       [](const RemoteWorker& w) { return w.waiting_tokens; });
}

}  // namespace banyan
