// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/completion.hpp>
#include <interpose/pnetcdf/engine/mark.hpp>

#include <interpose/pnetcdf/engine/movement.hpp>

#include <algorithm>
#include <array>

namespace interpose {

namespace {

/// Requests taken out of the queues, and where their statuses go.
struct Selection {
  std::vector<Request> puts, gets;
  std::vector<int *> get_statuses;
};

void take_everything(Requests &requests, int count, int *ids, int *statuses, Selection &selection) {
  selection.puts = requests.puts.take_all();
  selection.gets = requests.gets.take_all();
  std::fill_n(ids, count, NC_REQ_NULL);
  if (statuses == nullptr) return;
  std::fill_n(statuses, count, NC_NOERR);
  for (std::size_t i = 0; i < selection.gets.size(); ++i) selection.get_statuses.push_back(statuses + i);
}

/// Marks every request that `ids` names. NC_EINVAL_REQUEST if one does not exist.
int mark(Requests &requests, std::span<int> ids, int *statuses) {
  int error = NC_NOERR;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (statuses != nullptr) statuses[i] = NC_NOERR;
    if (ids[i] == NC_REQ_NULL) continue;
    Request *request = requests.of(ids[i]).find(ids[i]);
    if (request != nullptr && !request->refused) {
      request->refused = true;
      continue;
    }
    if (statuses != nullptr) statuses[i] = NC_EINVAL_REQUEST;
    error = NC_EINVAL_REQUEST;
  }
  return error;
}

void take_marked(Requests &requests, std::span<int> ids, int *statuses, Selection &selection) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == NC_REQ_NULL) continue;
    Queue &queue = requests.of(ids[i]);
    const bool is_read = &queue == &requests.gets;
    (is_read ? selection.gets : selection.puts).push_back(queue.take(ids[i]));
    if (is_read) selection.get_statuses.push_back(statuses == nullptr ? nullptr : statuses + i);
    ids[i] = NC_REQ_NULL;
  }
}

/// Takes out what a wait for (count, ids) completes. As natively, a wait for as many requests as are pending, all of
/// one kind, completes them all, whatever ids it names.
int select(Requests &requests, int count, int *ids, int *statuses, Selection &selection) {
  if (count == NC_REQ_ALL || count == NC_PUT_REQ_ALL) selection.puts = requests.puts.take_all();
  if (count == NC_REQ_ALL || count == NC_GET_REQ_ALL) selection.gets = requests.gets.take_all();
  if (count < 0) return NC_NOERR;
  const bool all_of_one_kind = (requests.gets.size() == 0 && count == requests.puts.size()) ||
                               (requests.puts.size() == 0 && count == requests.gets.size());
  if (all_of_one_kind || (count == requests.size() && statuses == nullptr)) {
    take_everything(requests, count, ids, statuses, selection);
    return NC_NOERR;
  }
  const std::span<int> named(ids, static_cast<std::size_t>(count));
  if (int error = mark(requests, named, statuses)) return error;
  take_marked(requests, named, statuses, selection);
  std::ranges::sort(selection.puts, {}, &Request::id);  // where they overlap, the one that was posted last stays
  return NC_NOERR;
}

/// What the program did not get done stays pending, under ids that it cannot name any more.
void put_back(Requests &requests, Selection &selection) {
  const auto restore = [](Queue &queue, std::vector<Request> &selected) {
    for (Request &request : selected) {
      request.refused = true;
      queue.put_back(std::move(request));
    }
  };
  restore(requests.puts, selection.puts);
  restore(requests.gets, selection.gets);
}

std::int64_t records_after(const File &file, const std::vector<Request> &puts) {
  std::int64_t records = file.num_records;
  for (const Request &request : puts) records = std::max(records, request.region.last_record);
  return records;
}

int carry_out_puts(File &file, Selection &selection) {
  const int status = write(file, selection.puts);
  if (file.attached_buffer) {
    for (const Request &request : selection.puts) file.attached_buffer->release(request.attached_slot);
    file.attached_buffer->reclaim();
  }
  return status;
}

int carry_out_gets(File &file, Selection &selection) {
  int status = NC_NOERR;
  if (selection.gets.empty()) return status;
  if (int error = read(file, selection.gets)) return error;
  for (std::size_t i = 0; i < selection.gets.size(); ++i) {
    const int error = deliver(selection.gets[i]);
    if (error == NC_NOERR) continue;
    if (status == NC_NOERR) status = error;
    if (i < selection.get_statuses.size() && selection.get_statuses[i] != nullptr) *selection.get_statuses[i] = error;
  }
  return status;
}

bool is_fixed(const Request &request) { return !request.variable->layout.is_record; }

/// Before they are carried out: what they make complete was put by earlier calls.
void note_marks(File &file, const Selection &selection, std::int64_t records) {
  for (const Request &request : selection.puts)
    mark_put(file, request.variable->layout.varid, file.num_records, file.num_records);
  mark_put(file, Communicator::kAnyVariable, file.num_records, records);
}

int complete_collectively(File &file, Selection &selection, int error) {
  enum { kReads, kWrites, kError, kRecords, kFixed };
  const auto fixed = std::ranges::count_if(selection.puts, is_fixed);
  const auto all = file.ranks().max(std::array<std::int64_t, 5>{
      static_cast<std::int64_t>(selection.gets.size()), static_cast<std::int64_t>(selection.puts.size()), -error,
      records_after(file, selection.puts), static_cast<std::int64_t>(fixed)});
  file.ranks().await_notes();
  if (all[kError] != 0) {
    put_back(file.requests, selection);
    return error;
  }
  int status = NC_NOERR;
  if (all[kWrites] > 0) {
    file.note_unsettled();
    note_marks(file, selection, all[kRecords]);
    if (fixed < all[kFixed]) mark_fixed_variables(file);
    file.raise_records(all[kRecords]);
    status = carry_out_puts(file, selection);
    file.ranks().note_written(Communicator::kAnyVariable, file.num_records);
  }
  if (all[kReads] == 0) return status;
  file.ranks().await_notes();
  const int failed = carry_out_gets(file, selection);
  file.ranks().note_read(Communicator::kAnyVariable);
  return status != NC_NOERR ? status : failed;
}

}  // namespace

int complete(File &file, int count, int *ids, int *statuses, bool collective) {
  if (file.in_define_mode) return NC_EINDEFINE;
  if (collective && file.independent) return NC_EINDEP;
  if (!collective && !file.independent) return NC_ENOTINDEP;
  if (!collective && count == 0) return NC_NOERR;
  Selection selection;
  const int error = select(file.requests, count, ids, statuses, selection);
  if (collective) return complete_collectively(file, selection, error);
  if (error != NC_NOERR) return error;
  file.num_records = records_after(file, selection.puts);
  const int status = carry_out_puts(file, selection);
  const int failed = carry_out_gets(file, selection);
  return status != NC_NOERR ? status : failed;
}

int complete_own(File &file, std::vector<int> ids, bool collective) {
  return complete(file, static_cast<int>(ids.size()), ids.data(), nullptr, collective);
}

// --- cancelling ------------------------------------------------------------------------------------------------------------

namespace {

bool cancel_one(File &file, int id) {
  Queue &queue = file.requests.of(id);
  if (queue.find(id) == nullptr) return false;
  const Request request = queue.take(id);
  if (file.attached_buffer) file.attached_buffer->release(request.attached_slot);
  return true;
}

}  // namespace

int cancel(File &file, int count, int *ids, int *statuses) {
  if (count == 0) return NC_NOERR;
  if (count < NC_PUT_REQ_ALL) return NC_EINVAL;
  if (count == NC_REQ_ALL || count == NC_GET_REQ_ALL) (void)file.requests.gets.take_all();
  if (count == NC_REQ_ALL || count == NC_PUT_REQ_ALL) {
    (void)file.requests.puts.take_all();
    if (file.attached_buffer) file.attached_buffer->clear();
  }
  int status = NC_NOERR;
  for (int i = 0; i < count; ++i) {
    if (statuses != nullptr) statuses[i] = NC_NOERR;
    if (ids[i] == NC_REQ_NULL) continue;
    if (cancel_one(file, ids[i])) {
      ids[i] = NC_REQ_NULL;
      continue;
    }
    if (statuses != nullptr) statuses[i] = NC_EINVAL_REQUEST;
    status = NC_EINVAL_REQUEST;
  }
  if (count > 0 && file.attached_buffer) file.attached_buffer->reclaim();
  return status;
}

}  // namespace interpose
