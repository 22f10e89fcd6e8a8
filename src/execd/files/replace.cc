#include "execd/files/replace.h"

#include <errno.h>
#include <unistd.h>

#include "base/text.h"
#include "execd/files/new_file.h"
#include "execd/json.h"

namespace osb::execd::files {
namespace {

constexpr std::size_t kBlock = 32 * 1024;
constexpr std::size_t kFlush = 64 * 1024;

struct Job {
  std::string asked;  // as the client wrote the path
  std::string path;
  std::string old;
  std::string replacement;
  std::uint64_t count = 0;
};

Error invalid(std::string what) { return Error(Errc::invalid_argument, std::move(what)).with_code("INVALID_REQUEST_BODY"); }

Result<std::vector<Job>> plan(const Setup& setup, std::string_view body) {
  auto object = parse_object(body);
  if (!object) return std::move(object).error().with_code("INVALID_REQUEST_BODY");
  if (object->size() > kMaxReplaced) return Error(Errc::too_large, cat("more than ", kMaxReplaced, " files in one request"));
  std::vector<Job> jobs;
  for (const auto& [key, value] : *object) {
    Job job{.asked = std::string(key), .path = {}, .old = {}, .replacement = {}};
    TRY(job.path, expand(setup, job.asked));
    if (!value.is_object()) return invalid("each file needs {\"old\",\"new\"}");
    auto old = text_member(value.get_object(), "old");
    auto replacement = text_member(value.get_object(), "new");
    if (!old || !replacement) return invalid("\"old\" and \"new\" must be strings");
    if (old->empty()) return invalid("\"old\" must not be empty");
    job.old = *std::move(old);
    job.replacement = *std::move(replacement);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

class Replacement final : public Work {
 public:
  Replacement(std::vector<Job> jobs, bool verbose) : jobs_(std::move(jobs)), verbose_(verbose) {}

  std::chrono::seconds limit() const override { return std::chrono::seconds(600); }
  Error late() const override { return Error(Errc::internal, "replacing takes longer than ten minutes"); }

  // New contents grow beside the old ones; nothing has changed before all are there.
  Result<bool> step() override {
    if (replacer_) return replace_some();
    if (next_ < jobs_.size()) return begin();
    for (NewFile& file : files_) CHECK_OK(file.commit());
    return true;
  }

  std::string take_result() override {
    std::string out = verbose_ ? "{" : "";
    for (const Job& job : jobs_) {
      if (!verbose_) break;
      if (out.size() > 1) out += ",";
      append_json_string(out, job.asked);
      out += cat(":{\"replacedCount\":", job.count, "}");
    }
    return verbose_ ? std::move(out += "}") : out;
  }

 private:
  Result<bool> begin() {
    Job& job = jobs_[next_];
    TRY(auto content, open_content(job.path));
    if (content.kernel_made) return refused(job.path, "is not a file that can be changed");
    in_ = std::move(content.fd);
    TRY(auto place, locate(job.path));
    TRY(auto file, NewFile::beside(std::move(place)));
    files_.push_back(std::move(file));
    replacer_ = std::make_unique<Replacer>(std::move(job.old), std::move(job.replacement));
    return false;
  }

  Result<bool> replace_some() {
    char block[kBlock];
    auto n = ::read(in_.get(), block, sizeof block);
    if (n < 0 && errno != EINTR) return failed("read", jobs_[next_].path, errno);
    if (n > 0) replacer_->feed({block, static_cast<std::size_t>(n)}, out_);
    if (n == 0) replacer_->finish(out_);
    if (n == 0 || out_.size() >= kFlush) {
      CHECK_OK(files_.back().write(out_));
      out_.clear();
    }
    if (n != 0) return false;
    auto count = jobs_[next_++].count = replacer_->count();
    replacer_.reset();
    if (count > 0)
      CHECK_OK(files_.back().seal({}, 0644));
    else
      files_.pop_back();
    return false;
  }

  std::vector<Job> jobs_;
  bool verbose_;
  std::size_t next_ = 0;
  Fd in_;
  std::unique_ptr<Replacer> replacer_;  // of jobs_[next_], while it is worked on
  std::vector<NewFile> files_;
  std::string out_;
};

}  // namespace

Replacer::Replacer(std::string old, std::string replacement) : old_(std::move(old)), new_(std::move(replacement)), border_(old_.size(), 0) {
  for (std::size_t i = 1, k = 0; i < old_.size(); ++i) {
    while (k > 0 && old_[i] != old_[k]) k = border_[k - 1];
    if (old_[i] == old_[k]) ++k;
    border_[i] = static_cast<std::uint32_t>(k);
  }
}

void Replacer::feed(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (matched_ == 0) {
      auto next = std::min(text.find(old_[0], i), text.size());
      out += text.substr(i, next - i);
      i = next;
      if (i == text.size()) return;
    }
    while (matched_ > 0 && text[i] != old_[matched_]) {
      std::size_t shorter = border_[matched_ - 1];
      out.append(old_, 0, matched_ - shorter);
      matched_ = shorter;
    }
    if (text[i] == old_[matched_])
      ++matched_;
    else
      out += text[i];
    if (matched_ < old_.size()) continue;
    out += new_;
    ++count_;
    matched_ = 0;
  }
}

void Replacer::finish(std::string& out) { out.append(old_, 0, std::exchange(matched_, 0)); }

Result<std::unique_ptr<Work>> replace(const Setup& setup, std::string_view body, bool verbose) {
  TRY(auto jobs, plan(setup, body));
  return std::unique_ptr<Work>(std::make_unique<Replacement>(std::move(jobs), verbose));
}

}  // namespace osb::execd::files
