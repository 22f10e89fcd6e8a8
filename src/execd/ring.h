// Ring: the last bytes a program wrote, addressed by byte offsets that never go back.
//
// A ring starts without memory and doubles up to its limit; a shared budget may refuse growth, and then the oldest
// bytes go earlier. Reading from an offset that is gone starts at the oldest byte kept, after a line that says how
// many are missing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace osb::execd {

class RingBudget {
 public:
  virtual ~RingBudget() = default;
  // May empty others to make room, never `asker` itself.
  virtual bool take(std::size_t bytes, const void* asker) = 0;
  virtual void give(std::size_t bytes) = 0;
};

class Ring {
 public:
  static constexpr std::size_t kSmallest = 4096;  // every ring gets this much, budget or not

  // The budget outlives the ring.
  Ring(std::size_t limit, RingBudget* budget) : limit_(limit), budget_(budget) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { release(); }

  void append(std::string_view bytes);
  std::uint64_t begin() const { return end_ - size_; }  // offset of the oldest byte kept
  std::uint64_t end() const { return end_; }            // offset of the next byte
  std::size_t memory() const { return bytes_.size(); }
  // Everything from `cursor` on; "[truncated N bytes]\n" comes first when N of them are gone.
  std::string read_from(std::uint64_t cursor) const;
  // Copies `count` bytes from offset `from` on; all of them are still kept.
  void copy(std::uint64_t from, char* into, std::size_t count) const;
  void release();  // forgets the bytes, keeps the offsets

 private:
  void make_room(std::size_t wanted);
  void grow(std::size_t capacity);
  void copy_out(std::string& out, std::uint64_t from) const;
  void write_at_end(std::string_view bytes);

  std::size_t limit_;
  RingBudget* budget_;
  std::string bytes_;     // the whole capacity
  std::size_t size_ = 0;  // bytes in use; the newest one is just before head_
  std::size_t head_ = 0;
  std::size_t charged_ = 0;  // bytes the budget granted
  std::uint64_t end_ = 0;
};

}  // namespace osb::execd
