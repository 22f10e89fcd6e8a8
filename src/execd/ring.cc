#include "execd/ring.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace osb::execd {

void Ring::append(std::string_view bytes) {
  make_room(size_ + bytes.size());
  if (bytes.size() > bytes_.size()) {
    end_ += bytes.size() - bytes_.size();
    bytes.remove_prefix(bytes.size() - bytes_.size());
    size_ = 0;
  }
  write_at_end(bytes);
}

void Ring::write_at_end(std::string_view bytes) {
  std::size_t first = std::min(bytes.size(), bytes_.size() - head_);
  bytes.copy(bytes_.data() + head_, first);
  bytes.substr(first).copy(bytes_.data(), bytes.size() - first);
  if (!bytes_.empty()) head_ = (head_ + bytes.size()) % bytes_.size();
  size_ = std::min(size_ + bytes.size(), bytes_.size());
  end_ += bytes.size();
}

void Ring::make_room(std::size_t wanted) {
  std::size_t capacity = std::max(bytes_.size(), std::min(kSmallest, limit_));
  while (capacity < wanted && capacity < limit_) capacity = std::min(capacity * 2, limit_);
  // Half of what was asked for is tried before giving up, so that a tight budget still grows a ring.
  for (; capacity > bytes_.size(); capacity /= 2) {
    std::size_t more = capacity - bytes_.size();
    bool granted = budget_ && budget_->take(more, this);
    if (granted) charged_ += more;
    if (granted || !budget_ || capacity <= kSmallest) return grow(capacity);
  }
}

void Ring::grow(std::size_t capacity) {
  std::string bigger;
  bigger.reserve(capacity);
  copy_out(bigger, begin());
  head_ = bigger.size() % capacity;
  bigger.resize(capacity);
  bytes_ = std::move(bigger);
}

void Ring::copy_out(std::string& out, std::uint64_t from) const {
  auto count = static_cast<std::size_t>(end_ - from);
  if (count == 0) return;
  std::size_t start = (head_ + bytes_.size() - count) % bytes_.size();
  std::size_t first = std::min(count, bytes_.size() - start);
  out.append(bytes_, start, first);
  out.append(bytes_, 0, count - first);
}

void Ring::copy(std::uint64_t from, char* into, std::size_t count) const {
  if (count == 0) return;
  std::size_t start = (head_ + bytes_.size() - static_cast<std::size_t>(end_ - from)) % bytes_.size();
  std::size_t first = std::min(count, bytes_.size() - start);
  bytes_.copy(into, first, start);
  bytes_.copy(into + first, count - first);
}

std::string Ring::read_from(std::uint64_t cursor) const {
  std::string out;
  std::uint64_t from = std::clamp(cursor, begin(), end_);
  if (cursor < from) out = cat("[truncated ", from - cursor, " bytes]\n");
  copy_out(out, from);
  return out;
}

void Ring::release() {
  if (budget_) budget_->give(std::exchange(charged_, 0));
  std::string().swap(bytes_);  // an assignment would keep the memory
  size_ = head_ = 0;
}

}  // namespace osb::execd
