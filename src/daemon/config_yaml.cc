#include "daemon/config_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"

namespace osb::daemon {
namespace {

struct Refused {
  std::size_t line;
  std::string what;
};

std::size_t line_of(const YAML::Mark& mark) { return static_cast<std::size_t>(std::max(mark.line, 0)) + 1; }

// The parser reports events and we stop it by throwing the first problem; nothing of it leaves this file.
class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlDocument take() { return std::move(document_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (names_a_member()) throw Refused{line_of(mark), "a key is missing"};
    add(mark, YamlNode::Kind::null);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { throw Refused{line_of(mark), "aliases (*name) are not read here"}; }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    refuse_tag(mark, tag);
    refuse_anchor(mark, anchor);
    if (names_a_member()) return begin_member(mark, value);
    document_.nodes[add(mark, YamlNode::Kind::scalar)].text = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    std::size_t node;
    bool has_name = false;  // the next event of this map is a value
  };

  // "!" is what the parser reports for quoted text, "?" for plain text.
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "!" && tag != "?") throw Refused{line_of(mark), "tags (!name) are not read here"};
  }
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) throw Refused{line_of(mark), "anchors (&name) are not read here"};
  }

  bool names_a_member() const {
    return !open_.empty() && document_.nodes[open_.back().node].kind == YamlNode::Kind::map && !open_.back().has_name;
  }

  void begin_member(const YAML::Mark& mark, const std::string& name) {
    auto& members = document_.nodes[open_.back().node].members;
    if (std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.name == name; }))
      throw Refused{line_of(mark), cat("key ", name.substr(0, 80), " appears twice")};
    members.push_back({name, line_of(mark), 0});
    open_.back().has_name = true;
  }

  std::size_t add(const YAML::Mark& mark, YamlNode::Kind kind) {
    std::size_t at = document_.nodes.size();
    document_.nodes.push_back({kind, line_of(mark), {}, {}, {}});
    if (open_.empty()) return at;
    auto& parent = document_.nodes[open_.back().node];
    if (parent.kind == YamlNode::Kind::list) {
      parent.items.push_back(at);
    } else {
      parent.members.back().node = at;
      open_.back().has_name = false;
    }
    return at;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    refuse_tag(mark, tag);
    refuse_anchor(mark, anchor);
    if (names_a_member()) throw Refused{line_of(mark), "a key must be plain text"};
    if (open_.size() == kMaxYamlDepth) throw Refused{line_of(mark), cat("nested deeper than ", kMaxYamlDepth, " levels")};
    open_.push_back({add(mark, kind)});
  }

  YamlDocument document_;
  std::vector<Open> open_;
};

Error at_line(std::size_t line, std::string_view what) { return {Errc::invalid_argument, cat("line ", line, ": ", what)}; }

}  // namespace

std::string_view name_of(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::null: return "nothing";
    case YamlNode::Kind::scalar: return "a single value";
    case YamlNode::Kind::list: return "a list";
    case YamlNode::Kind::map: return "a section";
  }
  return "?";
}

Result<YamlDocument> parse_yaml(std::string_view text) {
  if (text.size() > kMaxYamlBytes) return Error(Errc::invalid_argument, cat("larger than ", kMaxYamlBytes, " bytes"));
  if (text.find('\0') != std::string_view::npos) return Error(Errc::invalid_argument, "contains a NUL byte; this is not text");
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) return YamlDocument{};
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) return Error(Errc::invalid_argument, "holds more than one document (---)");
    return builder.take();
  } catch (const Refused& refused) {
    return at_line(refused.line, refused.what);
  } catch (const YAML::Exception& e) {
    return at_line(line_of(e.mark), e.msg);
  } catch (const std::exception& e) {
    return Error(Errc::invalid_argument, cat("cannot be read as YAML: ", std::string_view(e.what())));
  }
}

boost::json::value as_json(const YamlDocument& document, const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null: return nullptr;
    case YamlNode::Kind::scalar: return boost::json::string(node.text);
    case YamlNode::Kind::list: {
      boost::json::array out;
      for (auto item : node.items) out.push_back(as_json(document, document.nodes[item]));
      return out;
    }
    case YamlNode::Kind::map: break;
  }
  boost::json::object out;
  for (const auto& member : node.members)
    if (const auto& value = document.nodes[member.node]; value.kind != YamlNode::Kind::null) out[member.name] = as_json(document, value);
  return out;
}

}  // namespace osb::daemon
