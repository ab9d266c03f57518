#include "proptests/hostile_image.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>
#include <ios>
#include <ostream>

#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

namespace gen = rc::gen;

template <class T>
rc::Gen<T> below(T limit) {
  return gen::resize(100, gen::inRange<T>(0, limit));
}

rc::Gen<HostileRecord> sound_samples() {
  const auto of = [](std::uint16_t words, unsigned times) {
    const auto size = static_cast<std::uint16_t>(8 * (2 + words));
    return HostileRecord{9, size, size - 12U, size, times + 1};
  };
  const auto words = gen::weightedOneOf<std::uint16_t>(
      {{5, below<std::uint16_t>(10)}, {1, below<std::uint16_t>(600)}});
  return gen::apply(of, words, below<unsigned>(40));
}

rc::Gen<HostileRecord> liars() {
  const auto any = gen::arbitrary<std::uint32_t>();
  const auto types = gen::weightedOneOf<std::uint32_t>(
      {{4, gen::just(9U)}, {2, gen::just(2U)}, {1, below(20U)}, {1, any}});
  const auto sizes = gen::weightedOneOf<std::uint16_t>(
      {{4, gen::map(below(8), [](int n) { return static_cast<std::uint16_t>(8 * n); })},
       {1, below<std::uint16_t>(80)},
       {1, gen::arbitrary<std::uint16_t>()}});
  const auto raws = gen::weightedOneOf<std::uint32_t>(
      {{4, below(64U)},
       {1, gen::map(below(64U), [](std::uint32_t n) { return 0x8000'0000U + n; })},
       {1, gen::map(below(64U), [](std::uint32_t n) { return ~n; })},
       {1, any}});
  return gen::build<HostileRecord>(
      gen::set(&HostileRecord::type, types), gen::set(&HostileRecord::size, sizes),
      gen::set(&HostileRecord::raw, raws),
      gen::set(&HostileRecord::length, gen::map(below(8U), [](auto n) { return 8 * (1 + n); })));
}

}  // namespace

void HostileImage::write_to(perf_event_mmap_page& page, std::span<std::byte> data) const {
  std::uint32_t state = noise;
  for (std::byte& each : data) {
    state = state * 1664525 + 1013904223;
    each = noise == 0 ? std::byte{0} : static_cast<std::byte>(state >> 24);
  }
  std::uint64_t at = tail & ~std::uint64_t{7};
  const auto put = [&](const HostileRecord& record) {
    const perf_event_header header{record.type, 0, record.size};
    std::byte bytes[12];
    std::memcpy(bytes, &header, 8);
    std::memcpy(bytes + 8, &record.raw, 4);
    for (std::size_t i = 0; i < 12; ++i)
      data[static_cast<std::size_t>((at + i) % data.size())] = bytes[i];
    at += record.length;
  };
  for (const HostileRecord& record : records) {
    for (unsigned i = 0; i < record.times; ++i) put(record);
  }
  page.data_tail = tail;
  page.data_head = head();
}

std::ostream& operator<<(std::ostream& out, const HostileRecord& record) {
  if (record.times != 1) out << record.times << " times: ";
  return out << "type " << record.type << ", size " << record.size << ", raw size " << record.raw
             << "; the next " << record.length << " bytes on";
}

std::ostream& operator<<(std::ostream& out, const HostileImage& ring) {
  out << "a ring of " << ring.size << " bytes, tail " << std::hex << std::showbase << ring.tail
      << ", head " << ring.head() << std::dec << std::noshowbase << ", noise " << ring.noise;
  for (const HostileRecord& record : ring.records) out << "\n  " << record;
  return out;
}

rc::Gen<HostileImage> hostile_images(const rc::Gen<std::size_t>& sizes) {
  const auto of_size = [](std::size_t size) {
    const auto record = gen::weightedOneOf<HostileRecord>({{5, sound_samples()}, {2, liars()}});
    const auto words = gen::map(below<std::uint64_t>(size / 8 + 1), [](auto n) { return 8 * n; });
    const auto distances =
        gen::weightedOneOf<std::uint64_t>({{6, words},
                                           {6, gen::just(std::uint64_t{size})},
                                           {1, below<std::uint64_t>(2 * size)},
                                           {1, gen::arbitrary<std::uint64_t>()}});
    const auto tails = gen::apply(
        [](std::uint64_t position, std::uint64_t off) { return position + off; }, positions(),
        gen::weightedOneOf<std::uint64_t>(
            {{15, gen::just<std::uint64_t>(0)}, {1, below<std::uint64_t>(8)}}));
    return gen::build<HostileImage>(
        gen::set(&HostileImage::size, gen::just(size)), gen::set(&HostileImage::tail, tails),
        gen::set(&HostileImage::distance, distances),
        gen::set(&HostileImage::high,
                 gen::weightedOneOf<std::uint64_t>(
                     {{3, gen::just<std::uint64_t>(0)}, {1, gen::arbitrary<std::uint64_t>()}})),
        gen::set(&HostileImage::noise, gen::arbitrary<std::uint32_t>()),
        gen::set(&HostileImage::records, gen::container<std::vector<HostileRecord>>(record)));
  };
  return gen::mapcat(sizes, of_size);
}

}  // namespace perfring::proptests
