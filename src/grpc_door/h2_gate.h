// What stands between a client's bytes and the gRPC library: HTTP/2 frames, counted before the library sees them.
//
// Nothing is decoded but the nine bytes in front of each frame. A client that does not begin like HTTP/2, whose headers are too
// long, or that sends more frames of a kind that costs the server and not the client (resets, pings, settings, ...) than any
// use of ours needs, is refused; the rest passes unchanged.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace osb::grpc_door {

// So many at once, and so many more each second.
class Bucket {
 public:
  constexpr Bucket(double burst, double per_second) : burst_(burst), rate_(per_second), left_(burst) {}
  bool take(std::chrono::steady_clock::time_point now);

 private:
  double burst_;
  double rate_;
  double left_;
  std::chrono::steady_clock::time_point last_{};
};

inline constexpr std::size_t kMaxHeaderBlock = 24 * 1024;  // HEADERS and its CONTINUATIONs, as they stand on the wire
inline constexpr int kMaxContinuations = 8;

class H2Gate {
 public:
  // True: the bytes may pass. False, and for ever after: they may not, see why().
  bool take(std::string_view bytes, std::chrono::steady_clock::time_point now);
  bool greeted() const { return greeted_; }  // the whole preface was seen
  std::string_view why() const { return why_; }

 private:
  bool greet(std::string_view& bytes);
  bool begin_frame(std::chrono::steady_clock::time_point now);
  bool check_size() const;
  bool check_headers();
  Bucket& budget();
  bool refuse(std::string_view why);

  std::string_view why_;
  std::size_t preface_ = 0;
  bool greeted_ = false;
  bool first_frame_ = true;
  std::array<char, 9> head_{};
  std::size_t head_have_ = 0;
  std::size_t payload_left_ = 0;
  // Of the frame that begins.
  std::uint32_t length_ = 0;
  std::uint8_t type_ = 0;
  std::uint8_t flags_ = 0;
  // Of the header block that is under way.
  bool in_headers_ = false;
  std::size_t header_bytes_ = 0;
  int continuations_ = 0;

  Bucket resets_{200, 50};
  Bucket pings_{100, 20};
  Bucket settings_{32, 1};
  Bucket windows_{4000, 4000};
  Bucket empty_data_{100, 10};
  Bucket headers_{2000, 2000};
  Bucket others_{100, 10};
  Bucket data_{20'000, 20'000};
};

// A GOAWAY that says ENHANCE_YOUR_CALM, for clients that are cut off.
std::string goaway();

}  // namespace osb::grpc_door
