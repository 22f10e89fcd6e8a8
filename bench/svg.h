// Pictures as SVG text: readable in light and dark, with axes that say what they are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

enum class Kind : std::uint8_t { floor, ours, peer };

struct Bar {
  std::string label;
  double value = 0;    // <= 0: there is none, and `said` tells why
  double whisker = 0;  // a second, larger value as a thin line; 0: none
  std::string said;    // behind the bar
  Kind kind = Kind::peer;
};

struct Picture {
  std::string title, subtitle, axis;
  std::vector<Bar> bars;
  double line = 0;  // a promise, drawn across; 0: none
  std::string line_text{};
};

// Lying bars on a logarithmic axis, for things that differ by orders of magnitude.
std::string lying_bars(const Picture& picture);
// Standing columns on a linear axis from zero.
std::string standing_bars(const Picture& picture);

}  // namespace bench
