#include "grpc_door/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <set>

#include "base/text.h"

extern "C" const char osb_descriptors[];
extern "C" const char osb_descriptors_end[];

namespace osb::grpc_door {
namespace {

namespace pb = google::protobuf;

// Fields of ServerReflectionRequest and ServerReflectionResponse.
enum Ask { kByFilename = 3, kBySymbol = 4, kByExtension = 5, kExtensionNumbers = 6, kListServices = 7 };
enum Tell { kValidHost = 1, kOriginal = 2, kFiles = 4, kServices = 6, kError = 7 };
constexpr int kNotFound = 5;
constexpr std::size_t kMaxRequest = 8 * 1024;

std::string bytes_of(const pb::UnknownFieldSet& set) {
  std::string out;
  set.SerializeToString(&out);
  return out;
}

// The file and all it imports: clients need them to make sense of it.
void add_file(const pb::FileDescriptor* file, std::set<std::string>& seen, pb::UnknownFieldSet& files) {
  if (!seen.insert(file->name()).second) return;
  pb::FileDescriptorProto proto;
  file->CopyTo(&proto);
  proto.SerializeToString(files.AddLengthDelimited(1));
  for (int i = 0; i < file->dependency_count(); ++i) add_file(file->dependency(i), seen, files);
}

}  // namespace

struct Reflection::Impl {
  pb::DescriptorPool pool;
  std::vector<std::string> services;

  void add_answer(const pb::UnknownField& ask, pb::UnknownFieldSet& answer) const {
    std::string text = ask.type() == pb::UnknownField::TYPE_LENGTH_DELIMITED ? ask.length_delimited() : std::string();
    if (ask.number() == kListServices) return add_services(answer);
    const pb::FileDescriptor* file = nullptr;
    if (ask.number() == kByFilename) file = pool.FindFileByName(text);
    if (ask.number() == kBySymbol) file = pool.FindFileContainingSymbol(text);
    if (!file) return add_not_found(answer);
    std::set<std::string> seen;
    pb::UnknownFieldSet files;
    add_file(file, seen, files);
    answer.AddLengthDelimited(kFiles)->assign(bytes_of(files));
  }
  void add_services(pb::UnknownFieldSet& answer) const {
    pb::UnknownFieldSet list;
    for (const auto& name : services) {
      pb::UnknownFieldSet one;
      one.AddLengthDelimited(1)->assign(name);
      list.AddLengthDelimited(1)->assign(bytes_of(one));
    }
    answer.AddLengthDelimited(kServices)->assign(bytes_of(list));
  }
  static void add_not_found(pb::UnknownFieldSet& answer) {
    pb::UnknownFieldSet error;
    error.AddVarint(1, kNotFound);
    error.AddLengthDelimited(2)->assign("There is no such file, symbol or extension.");
    answer.AddLengthDelimited(kError)->assign(bytes_of(error));
  }
};

Reflection::Reflection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reflection::Reflection(Reflection&&) noexcept = default;
Reflection::~Reflection() = default;

Result<Reflection> Reflection::load() {
  pb::FileDescriptorSet set;
  Error broken(Errc::internal, "the descriptors of this program do not hold together");
  if (!set.ParseFromArray(osb_descriptors, static_cast<int>(osb_descriptors_end - osb_descriptors))) return broken;
  auto impl = std::make_unique<Impl>();
  for (const auto& file : set.file()) {
    const auto* built = impl->pool.BuildFile(file);
    if (!built) return broken;
    for (int i = 0; i < built->service_count(); ++i) impl->services.push_back(built->service(i)->full_name());
  }
  return Reflection(std::move(impl));
}

bool Reflection::is_path(std::string_view path) {
  return path == "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" ||
         path == "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
}

std::optional<std::string> Reflection::answer(std::string_view request) const {
  pb::UnknownFieldSet asked;
  if (request.size() > kMaxRequest || !asked.ParseFromArray(request.data(), static_cast<int>(request.size()))) return std::nullopt;
  pb::UnknownFieldSet answer;
  answer.AddLengthDelimited(kOriginal)->assign(request);
  const pb::UnknownField* last = nullptr;
  for (int i = 0; i < asked.field_count(); ++i)
    if (asked.field(i).number() >= kByFilename && asked.field(i).number() <= kListServices) last = &asked.field(i);
  if (last) {
    impl_->add_answer(*last, answer);
  } else {
    Impl::add_not_found(answer);
  }
  return bytes_of(answer);
}

}  // namespace osb::grpc_door
