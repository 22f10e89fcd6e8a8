#include "svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "print.h"

namespace bench {
namespace {

constexpr double kWidth = 860, kTop = 64;

// Colours that keep apart for people who see fewer of them; a dark page gets lighter ones.
constexpr const char* kStyle = R"(<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f }
.title { font-size: 17px; font-weight: 600 }
.small { font-size: 11.5px; fill: #57606a }
.page { fill: #ffffff } .grid { stroke: #d0d7de } .promise { stroke: #b35900; stroke-dasharray: 5 4 } .promise-text { fill: #b35900; font-size: 11.5px }
.floor { fill: #57606a } .ours { fill: #0969da } .peer { fill: #c9a227 } .whisker { stroke: #24292f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9da7b3 } .page { fill: #0d1117 } .grid { stroke: #30363d } .promise { stroke: #ffa657 } .promise-text { fill: #ffa657 }
.floor { fill: #8b949e } .ours { fill: #58a6ff } .peer { fill: #d8b84a } .whisker { stroke: #e6edf3 }
}
</style>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

const char* class_of(Kind kind) { return kind == Kind::floor ? "floor" : kind == Kind::ours ? "ours" : "peer"; }

std::string label(double x, double y, const char* anchor, const std::string& text, const char* style = "") {
  return print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor, style) + escaped(text) + "</text>\n";
}

std::string stroke(double x1, double y1, double x2, double y2, const char* style) {
  return print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, style);
}

std::string box(double x, double y, double width, double height, const char* style) {
  return print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\" class=\"%s\"/>\n", x, y, width, height, style);
}

std::string opening(const Picture& picture, double height) {
  std::string out =
      print("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">\n", kWidth,
            height, kWidth, height);
  out += "<title>" + escaped(picture.title) + "</title>\n";
  out += kStyle;
  out += print("<rect width=\"%.0f\" height=\"%.0f\" class=\"page\"/>\n", kWidth, height);
  out += label(16, 28, "start", picture.title, "title") + label(16, 48, "start", picture.subtitle, "small");
  return out;
}

// Which colour is whose, at the right of the title.
std::string legend() {
  std::string out;
  double x = kWidth - 292;
  for (auto [kind, name] : {std::pair{Kind::floor, "bare spawn"}, {Kind::ours, "OpenSandbox"}, {Kind::peer, "others"}}) {
    out += box(x, 18, 11, 11, class_of(kind)) + label(x + 16, 28, "start", name, "small");
    x += kind == Kind::floor ? 100 : 112;
  }
  return out;
}

std::string plain(double value) {
  return value >= 1000 ? print("%.0f,%03.0f", std::floor(value / 1000), std::fmod(value, 1000)) : print("%g", value);
}

// 1, 2, 2.5 or 5 times a power of ten: about five steps to `most`.
double nice_step(double most) {
  double step = std::pow(10, std::floor(std::log10(most / 5)));
  for (double factor : {1.0, 2.0, 2.5, 5.0, 10.0})
    if (most / (step * factor) <= 6) return step * factor;
  return step * 10;
}

// A logarithmic axis in whole powers of ten.
struct LogAxis {
  double left, right, low, high;
  double at(double value) const { return left + (right - left) * (std::log10(value) - low) / (high - low); }
};

LogAxis log_axis(const std::vector<Bar>& bars, double left, double right) {
  double least = 1e300, most = 0;
  for (const auto& bar : bars)
    if (bar.value > 0) least = std::min(least, bar.value), most = std::max({most, bar.value, bar.whisker});
  return {left, right, std::floor(std::log10(least) - 0.01), std::ceil(std::log10(most))};
}

}  // namespace

std::string lying_bars(const Picture& picture) {
  constexpr double kRow = 25, kLeft = 306, kRight = 700;
  double bottom = kTop + kRow * static_cast<double>(picture.bars.size()) + 4, height = bottom + 48;
  std::string out = opening(picture, height) + legend();
  LogAxis axis = log_axis(picture.bars, kLeft, kRight);
  for (double power = axis.low; power <= axis.high; ++power) {
    double x = axis.at(std::pow(10, power));
    out += stroke(x, kTop - 4, x, bottom, "grid") + label(x, bottom + 17, "middle", plain(std::pow(10, power)), "small");
  }
  out += label((kLeft + kRight) / 2, bottom + 36, "middle", picture.axis, "small");
  double y = kTop;
  for (const auto& bar : picture.bars) {
    out += label(kLeft - 10, y + 15, "end", bar.label);
    double end = kLeft;
    if (bar.value > 0) {
      end = axis.at(bar.value);
      out += box(kLeft, y + 3, std::max(2.0, end - kLeft), kRow - 9, class_of(bar.kind));
      if (bar.whisker > bar.value) {
        double far = axis.at(bar.whisker);
        out += stroke(end, y + 11, far, y + 11, "whisker") + stroke(far, y + 7, far, y + 15, "whisker");
        end = far;
      }
    }
    out += label(end + 8, y + 15, "start", bar.said, bar.value > 0 ? "" : "small");
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string standing_bars(const Picture& picture) {
  constexpr double kLeft = 76, kRight = kWidth - 24, kHeight = 260, kBottom = kTop + 16 + kHeight;
  std::string out = opening(picture, kBottom + 66);
  double most = picture.line;
  for (const auto& bar : picture.bars) most = std::max({most, bar.value, bar.whisker});
  double step = nice_step(most * 1.08), top = step * std::ceil(most * 1.08 / step);
  auto up = [&](double value) { return kBottom - kHeight * value / top; };
  for (double value = 0; value <= top * 1.001; value += step)
    out += stroke(kLeft, up(value), kRight, up(value), "grid") + label(kLeft - 8, up(value) + 4, "end", plain(value), "small");
  out += print("<text transform=\"translate(20 %.1f) rotate(-90)\" text-anchor=\"middle\" class=\"small\">", kBottom - kHeight / 2) +
         escaped(picture.axis) + "</text>\n";
  double slot = (kRight - kLeft) / static_cast<double>(picture.bars.size()), x = kLeft;
  for (const auto& bar : picture.bars) {
    double middle = x + slot / 2, width = std::min(64.0, slot * 0.6);
    if (bar.value > 0) out += box(middle - width / 2, up(bar.value), width, std::max(1.5, kBottom - up(bar.value)), class_of(bar.kind));
    out += label(middle, up(std::max(0.0, bar.value)) - 7, "middle", bar.value > 0 ? plain(bar.value) : "");
    out += label(middle, kBottom + 19, "middle", bar.label) + label(middle, kBottom + 37, "middle", bar.said, "small");
    x += slot;
  }
  if (picture.line > 0)
    out += stroke(kLeft, up(picture.line), kRight, up(picture.line), "promise") +
           label(kRight, up(picture.line) - 5, "end", picture.line_text, "promise-text");
  return out + "</svg>\n";
}

}  // namespace bench
