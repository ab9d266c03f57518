#ifndef PERFRING_RECORD_FIELD_WRITER_H_
#define PERFRING_RECORD_FIELD_WRITER_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// The fields that samples and other records share, as visit_fields() passes them. Internal to it.

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfring/record/fields.h"

namespace perfring::record::internal {

class FieldWriter {
 public:
  explicit FieldWriter(FieldVisitor& visitor) : to_{visitor} {}

  void of(const ReadValues& values);

 protected:
  template <class T>
  void number(std::string_view name, const std::optional<T>& value) {
    if (value) to_.number(name, *value);
  }
  void address(std::string_view name, const std::optional<std::uint64_t>& value) {
    if (value) to_.address(name, *value);
  }
  void words(std::string_view name, const U64s& words, bool addresses);
  void of(const Callchain& callchain) {
    to_.number("nr", callchain.ips().size());
    words("ips", callchain.ips(), true);
  }

  FieldVisitor& to_;
};

void visit_sample(const Sample& sample, FieldVisitor& visitor);

}  // namespace perfring::record::internal

#endif
#endif  // PERFRING_RECORD_FIELD_WRITER_H_
