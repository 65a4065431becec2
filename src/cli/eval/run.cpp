#include "cli/eval/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/signed.h"
#include "cli/eval/ask_many.h"
#include "cli/format.h"
#include "cli/terminal/terminal.h"
#include "client/http_client.h"
#include "client/serving_api.h"
#include "program/remote/sampling_json.h"

namespace banyan::cli {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr size_t kAnswerBytesMax = 64 << 20;

std::string time_left(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

Result<TextRequest> request_for(const Llm& llm, const EvalStyle& style, const std::string& prompt) {
  TextRequest request = style.request;
  request.text = prompt;
  if (style.chat) {
    request.text = TRY(llm.apply_chat_template({{.role = "user", .content = prompt}}));
    request.add_special_tokens = false;
  }
  return request;
}

// A question that can never be answered, such as one longer than the context, counts as wrong.
Result<EvalAnswer> answer_of(Result<Generation> generation) {
  if (!generation) {
    if (generation.error().code != ErrorCode::kInvalidArgument) {
      return std::unexpected(generation.error());
    }
    return EvalAnswer{.finish_reason = "error", .error = generation.error().message};
  }
  return EvalAnswer{.text = std::move(generation->text),
                    .finish_reason = to_string(generation->finish),
                    .prompt_tokens = std::ssize(generation->prompt_ids),
                    .completion_tokens = std::ssize(generation->output_ids)};
}

// A request of OpenAI's completions or chat completions.
std::string request_body(const EvalServer& server, const EvalStyle& style,
                         const std::string& prompt) {
  const GenerationOptions& options = style.request.options;
  Json body = {{"model", server.model}, {"max_tokens", options.max_new_tokens}};
  put_sampling(style.request.sampling, "seed", body);
  if (!options.stop.empty()) body["stop"] = options.stop;
  if (!options.stop_regex.empty()) body["stop_regex"] = options.stop_regex;
  if (!options.stop_token_ids.empty()) body["stop_token_ids"] = options.stop_token_ids;
  if (options.ignore_eos) body["ignore_eos"] = true;
  if (style.chat) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt}}});
  } else {
    body["prompt"] = prompt;
  }
  return dump_json(body);
}

// Parses a complete answer of either API.
Result<EvalAnswer> read_answer(const std::string& body, bool chat) {
  Json json = TRY(parse_json(body, "the answer", {.bytes_max = kAnswerBytesMax}));
  Json::json_pointer text(chat ? "/choices/0/message/content" : "/choices/0/text");
  if (!json.contains(text)) return corrupt("the answer has no {}", text.to_string());
  EvalAnswer answer;
  // A reasoning model that hit the limit has no content yet.
  if (json[text].is_string()) answer.text = json[text].get<std::string>();
  Json::json_pointer reason("/choices/0/finish_reason");
  if (json.contains(reason) && json[reason].is_string()) answer.finish_reason = json[reason];
  auto count = [&](const char* name) {
    Json::json_pointer place(fmt::format("/usage/{}", name));
    return json.contains(place) && json[place].is_number_integer() ? json[place].get<int64_t>() : 0;
  };
  answer.prompt_tokens = count("prompt_tokens");
  answer.completion_tokens = count("completion_tokens");
  return answer;
}

// Questions in flight on a server.
class ServerRun {
 public:
  ServerRun(boost::asio::io_context& io, HttpClient& client, const EvalServer& server,
            const EvalStyle& style, EvalRun& run)
      : io_(io), client_(client), server_(server), style_(style), run_(run), timer_(io) {}

  Status run() {
    fill();
    tick();
    io_.restart();
    io_.run();
    return std::move(status_);
  }

 private:
  struct Exchange {
    size_t index = 0;
    std::string body;
  };

  bool ending() const { return !status_ || InterruptScope::raised(); }

  void fill() {
    while (in_flight_ < style_.parallel && !ending()) {
      std::optional<size_t> index = run_.next();
      if (!index) break;
      auto exchange = std::make_shared<Exchange>(Exchange{.index = *index, .body = ""});
      ++in_flight_;
      client_.send(
          {.path = style_.chat ? "/v1/chat/completions" : "/v1/completions",
           .body = request_body(server_, style_, run_.item(*index).prompt)},
          {.body =
               [exchange](int, std::string_view piece) {
                 if (exchange->body.size() < kAnswerBytesMax) exchange->body += piece;
               },
           .end = [this, exchange](int status,
                                   const Status& outcome) { on_end(*exchange, status, outcome); }});
    }
    if (in_flight_ == 0) timer_.cancel();
  }

  void on_end(const Exchange& exchange, int http_status, const Status& outcome) {
    --in_flight_;
    settle(exchange, http_status, outcome);
    run_.show();
    // The connection is free once this callback has returned.
    boost::asio::post(io_, [this] { fill(); });
  }

  void settle(const Exchange& exchange, int http_status, const Status& outcome) {
    if (!outcome) return run_.fail(outcome.error().message);
    std::string refusal = http_status == 200 ? "" : error_message(exchange.body);
    if (http_status == 400 || http_status == 413 || http_status == 422) {
      // Such as a prompt longer than the server's context: it can never be answered.
      keep(run_.record(exchange.index, {.finish_reason = "error", .error = std::move(refusal)}));
      return;
    }
    if (http_status != 200) return run_.fail(fmt::format("HTTP {}: {}", http_status, refusal));
    Result<EvalAnswer> answer = read_answer(exchange.body, style_.chat);
    if (!answer) return run_.fail(answer.error().message);
    keep(run_.record(exchange.index, *std::move(answer)));
  }

  void keep(Status recorded) {
    if (!recorded && status_) status_ = std::move(recorded);
  }

  void tick() {
    auto now = std::chrono::steady_clock::now();
    if (ending()) {
      client_.cancel_older_than(std::chrono::steady_clock::time_point::max(), "interrupted");
      return;
    }
    auto limit = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(server_.timeout_s));
    client_.cancel_older_than(now - limit,
                              fmt::format("no complete answer in {:g} s", server_.timeout_s));
    timer_.expires_after(kTick);
    timer_.async_wait([this](const boost::system::error_code& ec) {
      if (!ec && in_flight_ > 0) tick();
    });
  }

  boost::asio::io_context& io_;
  HttpClient& client_;
  const EvalServer& server_;
  const EvalStyle& style_;
  EvalRun& run_;
  boost::asio::steady_timer timer_;
  int in_flight_ = 0;
  Status status_;
};

HttpClient::Headers headers_of(const EvalServer& server) {
  HttpClient::Headers headers = {{"User-Agent", fmt::format("banyan/{}", BANYAN_VERSION)}};
  if (!server.api_key.empty()) headers.emplace_back("Authorization", "Bearer " + server.api_key);
  return headers;
}

}  // namespace

EvalRun::EvalRun(const EvalTask& task, const EvalSet& set, size_t questions, PredictionFile& file)
    : task_(task), set_(set), questions_(questions), file_(file) {
  line_.emplace("eval");
  for (size_t i = 0; i < questions; ++i) {
    const std::optional<bool>& correct = file.correct()[i];
    done_ += correct.has_value();
    correct_ += correct.value_or(false);
  }
  done_before_ = done_;
}

std::optional<size_t> EvalRun::next() {
  while (place_ < questions_ && file_.correct()[place_]) ++place_;
  if (place_ == questions_) return std::nullopt;
  return place_++;
}

Status EvalRun::record(size_t index, EvalAnswer answer) {
  const EvalItem& question = set_.items[index];
  Prediction prediction{.index = static_cast<int64_t>(index),
                        .answer = task_.extract(answer.text),
                        .expected = question.answer,
                        .text = std::move(answer.text),
                        .finish_reason = std::move(answer.finish_reason),
                        .prompt_tokens = answer.prompt_tokens,
                        .completion_tokens = answer.completion_tokens,
                        .error = std::move(answer.error)};
  prediction.correct = prediction.answer == question.answer;
  TRY(file_.append(prediction));
  ++done_;
  correct_ += prediction.correct;
  unanswerable_ += !prediction.error.empty();
  tokens_ += prediction.completion_tokens;
  return {};
}

void EvalRun::show() {
  Clock::time_point now = Clock::now();
  if (now < next_shown_) return;
  next_shown_ = now + kTick;
  std::string state = fmt::format("{} of {}", done_, questions_);
  int64_t fresh = done_ - done_before_;
  if (done_ > 0) {
    state += fmt::format("  accuracy {:.4f}", static_cast<double>(correct_) / done_);
  }
  if (fresh > 0) {
    double seconds = std::chrono::duration<double>(now - begin_).count();
    state += fmt::format("  {:.0f} tokens/s", static_cast<double>(tokens_) / seconds);
    double left = static_cast<double>(questions() - done_) / fresh;
    state += "  " + time_left(seconds * left);
  }
  line_->show(state);
}

Status run_in_engine(Llm& llm, const EvalStyle& style, EvalRun& run) {
  ManyAsked asked{.at_once = as_size(std::max(style.parallel, 1))};
  asked.next = [&]() -> Result<std::optional<ManyAsked::Request>> {
    std::optional<size_t> index = run.next();
    if (!index) return std::nullopt;
    return ManyAsked::Request{*index, TRY(request_for(llm, style, run.item(*index).prompt))};
  };
  asked.take = [&](size_t index, Result<Generation> generation) -> Status {
    TRY(run.record(index, TRY(answer_of(std::move(generation)))));
    run.show();
    return {};
  };
  return ask_many(llm, asked);
}

Status run_on_server(const EvalServer& server, const EvalStyle& style, EvalRun& run) {
  boost::asio::io_context io(1);
  HttpClient client(io, server.url, headers_of(server));
  TRY(client.resolve());
  return ServerRun(io, client, server, style, run).run();
}

Result<std::string> served_model(const EvalServer& server, const std::string& base_url) {
  boost::asio::io_context io(1);
  HttpClient client(io, server.url, headers_of(server));
  TRY(client.resolve());
  return TRY(ask_server(client, base_url)).model;
}

}  // namespace banyan::cli
