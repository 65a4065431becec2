#include "api/server_fixture.h"

#include <fmt/format.h>

#include <chrono>
#include <new>

#include "base/log.h"

namespace banyan::test {
namespace {

int64_t number(const HttpRequest& request, std::string_view name, int64_t otherwise) {
  auto text = request.parameter(name);
  return text ? std::stoll(std::string(*text)) : otherwise;
}

void generate(Service& service, const HttpRequest& request, ResponderPtr responder, bool streams) {
  std::vector<GenerateRequest> requests(1);
  requests[0].prompt.assign(static_cast<size_t>(number(request, "prompt", 3)), 1);
  requests[0].options.max_new_tokens = number(request, "tokens", 10);
  requests[0].options.client = request.client;
  auto count = std::make_shared<int64_t>(0);
  SubmissionSinks sinks;
  std::string pad(static_cast<size_t>(number(request, "pad", 0)), 'x');
  sinks.event = [responder, streams, count, pad](size_t, const TokenEvent& event) {
    *count += event.has_token;
    if (streams && !responder->started()) responder->begin_stream();
    if (streams && event.has_token)
      responder->send(fmt::format("data: {}{}\n\n", event.token, pad));
    if (event.finish == FinishReason::kNone) return;
    if (streams) {
      responder->send(fmt::format("data: {}\n\n", to_string(event.finish)));
      return responder->finish();
    }
    responder->respond(200, fmt::format("{} {}", *count, to_string(event.finish)), "text/plain");
  };
  sinks.rejected = [responder](const Error& error) {
    responder->respond_error(error.code == ErrorCode::kExhausted ? 503 : 400, error.message);
  };
  auto submission = service.submit(request.id, std::move(requests), std::move(sinks));
  if (!submission) return responder->respond_error(503, submission.error().message);
  responder->on_disconnect([&service, submission = *submission] {
    service.abandon(submission, FinishReason::kCancelled);
  });
}

void stream(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, request, std::move(responder), true);
}

void count(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, request, std::move(responder), false);
}

void echo(Service& service, HttpRequest request, ResponderPtr responder) {
  bool taken = service.run_on_worker(
      request.client, [body = std::move(request.body)]() -> Result<size_t> { return body.size(); },
      [responder](Result<size_t> size) {
        responder->respond(200, std::to_string(*size), "text/plain");
      });
  if (!taken) responder->respond_error(503, "busy");
}

// Blocks the thread that compiles grammars until the test releases it. Answers once it waits: a
// release that nobody waited for would let the next test's go on.
void hold_grammars(Service& service, HttpRequest, ResponderPtr responder) {
  auto waits = std::make_shared<std::binary_semaphore>(0);
  service.grammars().run([waits] {
    waits->release();
    grammars_held().acquire();
  });
  waits->acquire();
  responder->respond(200, "", "text/plain");
}

// Blocks the engine's thread until the test releases it. Answers once it waits, which it may not do
// before the I/O thread, which must not wait here, has taken the tokens of its steps.
void hold_engine(Service& service, HttpRequest request, ResponderPtr responder) {
  auto waits = std::make_shared<std::binary_semaphore>(0);
  service.engine()->run([waits](Engine&) {
    waits->release();
    engine_held().acquire();
  });
  bool taken = service.run_on_worker(
      request.client,
      [waits]() -> Status {
        waits->acquire();
        return {};
      },
      [responder](Status) { responder->respond(200, "", "text/plain"); });
  if (!taken) responder->respond_error(503, "busy");
}

void silent(Service&, HttpRequest, ResponderPtr) {}

void throws(Service&, HttpRequest, ResponderPtr) {
  throw std::bad_alloc();
}

void pour(Service&, HttpRequest request, ResponderPtr responder) {
  responder->begin_stream();
  std::string piece(1000, 'x');
  for (int64_t left = number(request, "bytes", 0); left > 0; left -= std::ssize(piece)) {
    if (!responder->send(piece)) return;
  }
  responder->finish();
}

}  // namespace

std::binary_semaphore& grammars_held() {
  static std::binary_semaphore held(0);
  return held;
}

std::binary_semaphore& engine_held() {
  static std::binary_semaphore held(0);
  return held;
}

std::span<const Route> test_routes() {
  static const std::vector<Route> kRoutes = [] {
    std::vector<Route> routes(all_routes().begin(), all_routes().end());
    routes.push_back({"GET", "/stream", stream});
    routes.push_back({"GET", "/count", count});
    routes.push_back({"POST", "/echo", echo});
    routes.push_back({"GET", "/silent", silent});
    routes.push_back({"GET", "/hold_grammars", hold_grammars});
    routes.push_back({"GET", "/hold_engine", hold_engine});
    routes.push_back({"GET", "/throw", throws});
    routes.push_back({"GET", "/pour", pour});
    return routes;
  }();
  return kRoutes;
}

void ServerTest::start(bool with_model) {
  spdlog::set_level(spdlog::level::off);
  server_ = std::make_unique<Server>(config, test_routes());
  if (puller) server_->on_pull(puller);
  Status listening = server_->listen();
  ASSERT_TRUE(listening) << listening.error().message;
  thread_ = std::jthread([this] {
    Status ended = server_->run();
    EXPECT_TRUE(ended) << ended.error().message;
  });
  if (with_model) attach_model();
}

void ServerTest::attach_model() {
  server_->attach(Llm::load(engine), engine);
  counts();  // until the model is in place
}

void ServerTest::stop() {
  if (!thread_.joinable()) return;
  server_->drain();
  thread_.join();
}

bool ServerTest::eventually(const std::function<bool(const Server::Counts&)>& condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (std::chrono::steady_clock::now() < end) {
    if (condition(counts())) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

bool ServerTest::back_to_base() {
  return eventually([](const Server::Counts& c) {
    return c.connections == 0 && c.exchanges == 0 && c.body_bytes == 0 && c.engine.running == 0 &&
           c.engine.queued == 0 &&
           c.engine.pages_free + c.engine.pages_cached == c.engine.pages_total;
  });
}

}  // namespace banyan::test
