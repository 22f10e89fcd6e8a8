#include "execd/wakeup.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <utility>

namespace osb::execd {

Task<void> Wakeup::wait(Clock::duration patience) {
  timer_.expires_after(patience);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec) go_on();  // otherwise it has woken, and this may be gone
  });
  auto stay = [this](Waiter waiter) {
    auto slot = asio::get_associated_cancellation_slot(waiter);
    if (slot.is_connected()) slot.assign([this](asio::cancellation_type) { wake(); });
    waiter_.emplace(std::move(waiter));
  };
  Token token;
  co_await asio::async_initiate<Token, void()>(stay, token);
}

// A timer that cannot be cancelled any more has its handler in the queue, which then goes on instead: it must still be there.
void Wakeup::wake() {
  if (waiter_ && timer_.cancel() > 0) go_on();
}

void Wakeup::go_on() {
  Waiter waiter = *std::exchange(waiter_, std::nullopt);
  waiter();
}

}  // namespace osb::execd
