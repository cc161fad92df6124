#include "pool.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace npjit::pool {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t smallest = 4096;
constexpr std::size_t mapped_from = std::size_t{1} << 20;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr int class_count = 4 * 52;

struct Link {
  Link* previous;
  Link* next;
};

// Sits in the 64 bytes before a block's memory.
struct alignas(alignment) Header {
  std::size_t capacity;
  std::size_t mapped;  // bytes of the mapping, 0 when malloc owns the block
  int size_class;
  Link in_class;  // links of idle blocks
  Link by_age;
};
static_assert(sizeof(Header) == alignment);

int class_of(std::size_t bytes) {
  // Class 4k + j holds (4 + j) / 4 of 4096 * 2^k bytes.
  std::size_t base = smallest;
  int power = 0;
  while (base * 2 <= bytes) {
    base *= 2;
    power += 1;
  }
  const std::size_t step = base / 4;
  const std::size_t above = bytes > base ? (bytes - base + step - 1) / step : 0;
  return 4 * power + static_cast<int>(above);
}

std::size_t class_bytes(int size_class) {
  const std::size_t base = smallest << (size_class / 4);
  return base + base / 4 * (size_class % 4);
}

void push_front(Link& list, Link& item) {
  item.previous = &list;
  item.next = list.next;
  list.next->previous = &item;
  list.next = &item;
}

void unlink(Link& item) {
  item.previous->next = item.next;
  item.next->previous = item.previous;
}

Header* owner(Link* link, std::size_t offset) {
  return reinterpret_cast<Header*>(reinterpret_cast<char*>(link) - offset);
}

Header* header_of(const void* memory) {
  return reinterpret_cast<Header*>(const_cast<char*>(static_cast<const char*>(memory)) - alignment);
}

// A mapping whose start is a multiple of 2 MiB, so that the kernel can use huge pages from the
// first byte on.
void* map_aligned(std::size_t bytes) {
  const std::size_t padded = bytes + huge_page;
  void* raw = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    return nullptr;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = (start + huge_page - 1) / huge_page * huge_page;
  const std::size_t before = aligned - start;
  const std::size_t after = padded - before - bytes;
  if (before != 0) {
    munmap(raw, before);
  }
  if (after != 0) {
    munmap(reinterpret_cast<void*>(aligned + bytes), after);
  }
  auto* memory = reinterpret_cast<void*>(aligned);
#ifdef MADV_HUGEPAGE
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

Header* make_block(int size_class) {
  const std::size_t bytes = class_bytes(size_class);
  const std::size_t whole = bytes + alignment;
  Header* header = nullptr;
  std::size_t mapped = 0;
  if (bytes >= mapped_from) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    mapped = (whole + page - 1) / page * page;
    header = static_cast<Header*>(map_aligned(mapped));
  } else {
    header = static_cast<Header*>(std::aligned_alloc(alignment, whole));
  }
  if (header != nullptr) {
    header->capacity = bytes;
    header->mapped = mapped;
    header->size_class = size_class;
  }
  return header;
}

void destroy_block(Header* header) {
  if (header->mapped != 0) {
    munmap(header, header->mapped);
  } else {
    std::free(header);
  }
}

std::size_t default_bound() {
  const auto pages = static_cast<std::size_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min(pages * page / 4, std::size_t{2} << 30);
}

class Pool {
 public:
  Pool() {
    counts_.bound = default_bound();
    by_age_ = {&by_age_, &by_age_};
    for (Link& list : idle_) {
      list = {&list, &list};
    }
  }

  void* allocate(std::size_t bytes) {
    if (bytes > SIZE_MAX / 4) {
      return nullptr;
    }
    const int size_class = class_of(bytes);
    Header* header = take_idle(size_class);
    if (header == nullptr) {
      header = make_block(size_class);
      if (header == nullptr) {
        trim(0);
        header = make_block(size_class);
      }
      if (header == nullptr) {
        return nullptr;
      }
      const std::lock_guard<std::mutex> guard(mutex);
      counts_.fresh += 1;
      count_live(header);
    }
    return reinterpret_cast<char*>(header) + alignment;
  }

  void release(void* memory) {
    Header* header = header_of(memory);
    const std::lock_guard<std::mutex> guard(mutex);
    counts_.live_bytes -= header->capacity;
    counts_.live_blocks -= 1;
    if (header->capacity > counts_.bound) {
      destroy_block(header);
      return;
    }
    counts_.idle_bytes += header->capacity;
    counts_.idle_blocks += 1;
    push_front(idle_[header->size_class], header->in_class);
    push_front(by_age_, header->by_age);
    shrink(counts_.bound);
  }

  void trim(std::size_t keep) {
    const std::lock_guard<std::mutex> guard(mutex);
    shrink(keep);
  }

  void set_bound(std::size_t bytes) {
    const std::lock_guard<std::mutex> guard(mutex);
    counts_.bound = bytes;
    shrink(bytes);
  }

  Stats stats() {
    const std::lock_guard<std::mutex> guard(mutex);
    return counts_;
  }

  std::mutex mutex;

 private:
  Header* take_idle(int size_class) {
    const std::lock_guard<std::mutex> guard(mutex);
    Link* link = idle_[size_class].next;
    if (link == &idle_[size_class]) {
      return nullptr;
    }
    Header* header = owner(link, offsetof(Header, in_class));
    forget_idle(header);
    counts_.reused += 1;
    count_live(header);
    return header;
  }

  void count_live(const Header* header) {
    counts_.live_bytes += header->capacity;
    counts_.live_blocks += 1;
  }

  void forget_idle(Header* header) {
    unlink(header->in_class);
    unlink(header->by_age);
    counts_.idle_bytes -= header->capacity;
    counts_.idle_blocks -= 1;
  }

  void shrink(std::size_t keep) {
    while (counts_.idle_bytes > keep) {
      Header* oldest = owner(by_age_.previous, offsetof(Header, by_age));
      forget_idle(oldest);
      destroy_block(oldest);
    }
  }

  Stats counts_{};
  Link idle_[class_count];
  Link by_age_;
};

Pool* create() {
  // Never destroyed: arrays may outlive every static destructor. A fork holds the lock, so the
  // child finds it free.
  auto* pool = new Pool;
  static Pool* const forked = pool;
  pthread_atfork([] { forked->mutex.lock(); }, [] { forked->mutex.unlock(); },
                 [] { forked->mutex.unlock(); });
  return pool;
}

Pool& the_pool() {
  static Pool* const pool = create();
  return *pool;
}

}  // namespace

void* allocate(std::size_t bytes) noexcept { return the_pool().allocate(bytes); }

void release(void* memory) noexcept {
  if (memory != nullptr) {
    the_pool().release(memory);
  }
}

std::size_t capacity(const void* memory) noexcept { return header_of(memory)->capacity; }

void trim(std::size_t keep) noexcept { the_pool().trim(keep); }

void set_bound(std::size_t bytes) noexcept { the_pool().set_bound(bytes); }

Stats stats() noexcept { return the_pool().stats(); }

}  // namespace npjit::pool
