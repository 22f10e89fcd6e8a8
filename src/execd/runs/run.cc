#include "execd/runs/run.h"

#include "base/clock.h"
#include "execd/events.h"

namespace osb::execd::runs {

void Run::keep(std::string_view events) {
  log_.append(events, seq_ - log_.last(), primary_ ? primary_->delivered_ : ~std::uint64_t{0});
  tell();
}

void Run::finish(std::string_view events) {
  ended_ = true;
  ended_nanos_ = boot_now_nanos();
  keep(events);
}

void Run::tell() {
  for (Timer* timer : waiting_) timer->cancel();
}

Task<void> Run::changed(Clock::time_point until) {
  Timer timer(executor_, until);
  auto place = waiting_.insert(waiting_.end(), &timer);
  co_await timer.async_wait(nothrow);
  waiting_.erase(place);
}

Task<void> Run::room() {
  while (primary_ && log_.end() - primary_->delivered_ >= kWindow) co_await changed(Clock::time_point::max());
}

Reader::Reader(std::shared_ptr<Run> run, std::uint64_t since) : run_(std::move(run)), at_(run_->log_.find(since)), delivered_(at_.offset) {
  if (!run_->primary_) run_->primary_ = this;
}

Reader::~Reader() {
  if (run_->primary_ != this) return;
  run_->primary_ = nullptr;
  run_->tell();
}

bool Reader::take(std::string& out) {
  std::size_t before = out.size();
  std::uint64_t missed = run_->log_.read(at_, out, before + kBatchBytes);
  if (missed > 0) {
    std::string notice;
    events::append_truncated(notice, missed);
    out.insert(before, notice);
  }
  return out.size() > before;
}

void Reader::delivered() {
  delivered_ = at_.offset;
  if (run_->primary_ != this) return;
  run_->delivered_ = run_->delivered_ || at_end();
  run_->tell();
}

Task<void> Reader::news(Run::Clock::time_point until) {
  if (at_.offset == run_->log_.end() && !run_->ended_) co_await run_->changed(until);
}

}  // namespace osb::execd::runs
