// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/loader.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

namespace {

constexpr std::uint64_t kManyClean = 64 << 20;  // what is read ahead does not drive out what has just been

/// A run has but a few boxes: its ends, and what is between.
int read_run(NativeFile &file, const Variable &variable, Interval run, std::int64_t records, std::byte *data) {
  for (const auto &box : boxes_of(variable, run)) {
    const Piece piece{variable.varid, box.start, box.count, {}};
    if (int error = file.read(variable, piece, records, data); error != NC_NOERR) return error;
    data += box.elements() * variable.element_bytes;
  }
  return NC_NOERR;
}

bool is_leaving(const CachedVariable &variable, std::int64_t index) {
  const auto first = index * variable.page_elements;
  return std::ranges::any_of(variable.draining, [=](const Page *page) { return page->first() == first; });
}

}  // namespace

Loader::Load::~Load() {
  if (page == nullptr) return;
  drainer_.cache().unpin(*page);
  drainer_.note_memory();
}

int Loader::Load::wait() {
  while (!is_over_)
    if (!ended_.wait().ok()) return NC_EREAD;  // the server ends
  return nc_error_;
}

std::shared_ptr<Loader::Load> Loader::load(OpenFile &file, CachedVariable &variable, std::int64_t index, bool ahead) {
  if (const auto found = variable.loading.find(index); found != variable.loading.end()) {
    auto present = std::static_pointer_cast<Load>(found->second);
    if (ahead || !present->is_ahead_ || present->has_begun_) return present;
    present->is_dropped_ = true;  // it may be long before its turn comes
  }
  if (variable.pages.contains(index) || is_leaving(variable, index)) return nullptr;
  const auto first = index * variable.page_elements;
  const auto &shape = variable.variable;
  const auto end = shape.extent_elements() * (shape.is_record ? file.num_records : 1);
  const Interval present{first, std::min(first + variable.page_elements, end)};
  if (present.size() <= 0) return nullptr;
  auto &cache = drainer_.cache();
  auto page =
      cache.blank(variable, index, !ahead || (cache.clean_bytes() > kManyClean && !drainer_.is_short_of_memory()));
  if (!page) return nullptr;
  drainer_.cache().forget(variable, index);
  auto load = std::make_shared<Load>(runtime_, drainer_);
  load->variable = &variable;
  load->index = index;
  load->page = page.get();
  load->page->pin();
  load->own_ = std::move(page);
  load->present_ = present;
  load->bytes_ = static_cast<std::uint64_t>(present.size() * shape.element_bytes);
  load->is_ahead_ = ahead;
  variable.loading[index] = load;
  start(file, shape, load);
  return load;
}

void Loader::start(OpenFile &file, const Variable &shape, const std::shared_ptr<Load> &load) {
  if (load->is_ahead_) ++ahead_;
  const auto lane = load->is_ahead_ ? Worker::Lane::kAhead : Worker::Lane::kRequest;
  const auto records = file.num_records;
  // Both go on with what is posted: nothing of them is to end on the I/O thread.
  io_.submit(lane, [this, load = std::shared_ptr(load), shape, records, file = file.shared_from_this()]() mutable {
    load->has_begun_ = true;
    PageCache::clear_present(*load->page);
    load->nc_error_ =
        load->is_dropped_ ? NC_EREAD : read_run(*file->native, shape, load->present_, records, load->page->data());
    if (load->nc_error_ == NC_NOERR) PageCache::note_present(*load->page, load->present_);
    runtime_.post([this, load = std::move(load), file = std::move(file)] { finish(*load); });
  });
}

void Loader::finish(Load &load) {
  auto &cache = drainer_.cache();
  if (load.is_ahead_) --ahead_;
  auto *variable = std::exchange(load.variable, nullptr);
  if (variable != nullptr) variable->loading.erase(load.index);
  statistics_.bytes_read += load.bytes_;
  if (variable != nullptr && load.nc_error_ == NC_NOERR && variable->keeps_clean)
    cache.keep(std::move(load.own_));
  else
    cache.give_up(std::move(load.own_));
  load.is_over_ = true;
  load.ended_.notify_all();
  drainer_.note_memory();
}

}  // namespace staging
