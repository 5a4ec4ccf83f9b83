! SPDX-License-Identifier: BSD-3-Clause
! NSSI: remote procedure calls in which the server directs the data. What nssi/runtime.h is in C; README.md beside this
! file says what it promises, and nssi/runtime.h when each error comes.
!
! Functions return a nessie_status. Times are in milliseconds; a timeout_ms of -1: no limit of its own, 0: without
! waiting, absent: -1 for waits, nssi.timeout (30 s) for calls.
!
! Runtimes, buffers and calls are handles: a copy is the same thing, and each is closed, or freed, once, by the program.
module nssi
  use, intrinsic :: iso_c_binding
  use nessie
  use nssi_c
  implicit none
  private
  public :: nessie_status, nessie_error, nessie_ok, nessie_timed_out, nessie_peer_lost, nessie_refused, &
    nessie_invalid_argument, nessie_out_of_range, nessie_not_found, nessie_exists, nessie_unsupported, &
    nessie_no_memory, nessie_busy, nessie_bad_message, nessie_io, nessie_cancelled, nessie_no_result, nessie_internal, &
    nessie_too_large, nessie_interrupted, nessie_unavailable, nessie_scope_operation, nessie_scope_peer, nessie_scope_service, &
    nessie_scope_process
  public :: nssi_wait_any, nssi_wait_all, nssi_lends

  ! What a service may do with a buffer: pull from it, push to it.
  integer(c_int32_t), parameter, public :: nssi_read = 1, nssi_write = 2, nssi_read_write = 3
  ! How a handler runs; nssi/runtime.h, enum nssi_rt_kind.
  integer(c_int32_t), parameter, public :: nssi_fiber = 0, nssi_short = 1, nssi_bulk = 2, nssi_bulk_now = 3

  ! What a caller has proved; nssi/runtime.h, enum nssi_rt_role.
  integer(c_int32_t), parameter, public :: nssi_user = 0, nssi_operator = 1

  ! What is zero, or not allocated, is the default.
  type, public :: nssi_options
    character(len=:), allocatable :: transports    ! 'shm,ofi', in order of preference; all that there are
    character(len=:), allocatable :: settings      ! lines `name = value`, which go before the environment
    integer(c_int64_t) :: fiber_stack_bytes = 0    ! of a handler; 1 MiB
    integer(c_int32_t) :: max_fibers = 0           ! handlers under way at once; 1024
    logical :: connects_only = .false.             ! nobody can connect to this process
    integer(c_int32_t) :: bulk_quiet_us = 0        ! without a request before bulk handlers begin
    integer(c_int32_t) :: bulk_longest_hold_us = 0 ! the oldest of which is held back so long at most; 20000
  end type

  ! One of the instances of an interface that a process offers.
  type, bind(C), public :: nssi_service
    integer(c_int64_t) :: peer = 0
    integer(c_int32_t) :: program = 0, version = 0, provider = 0
  end type

  type, public :: nssi_buffer
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: memory => buffer_memory         ! type(c_ptr)
    procedure :: size_bytes => buffer_size_bytes
    procedure :: rights => buffer_rights
    procedure :: free => buffer_free             ! nessie_busy: lent to a call that has not been waited for
  end type

  ! Is told that a call is over; nssi_call%when_over().
  type, abstract, public :: nssi_callback
  contains
    procedure(call_is_over), deferred :: over
  end type
  abstract interface
    subroutine call_is_over(self)
      import :: nssi_callback
      class(nssi_callback), intent(inout) :: self
    end subroutine
  end interface

  ! What a callback is found by; goes with its call.
  type :: told_t
    class(nssi_callback), pointer :: callback => null()
  end type

  type, public :: nssi_call
    private
    type(c_ptr) :: handle = c_null_ptr
    logical :: one_way = .false.
    type(told_t), pointer :: told => null()
  contains
    procedure :: is_open => call_is_open         ! there is one to wait for, or to free
    procedure :: is_one_way => call_is_one_way   ! its result is empty, whatever the interface says
    procedure :: test => call_test               ! (is_over)
    procedure :: wait => call_wait               ! ([timeout_ms])
    procedure :: result => call_result           ! (bytes): valid until free()
    procedure :: take => call_take               ! (bytes, [timeout_ms]): both; a call that ended badly is freed
    procedure :: cancel => call_cancel
    procedure :: when_over => call_when_over     ! (callback)
    procedure :: free => call_free               ! cancels it if it is not over
  end type

  ! A request as its handler sees it, until the handler returns.
  type, public :: nssi_request
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: caller => request_caller
    procedure :: caller_identity => request_caller_identity ! (identity): its process, 16 bytes
    procedure :: role => request_role             ! nssi_user or nssi_operator
    procedure :: op => request_op
    procedure :: args => request_args             ! (bytes)
    procedure :: data_bytes => request_data_bytes ! of the caller's buffer; 0 if it lent none
    procedure :: time_left_ms => request_time_left_ms
    procedure :: check => request_check           ! whether somebody still waits for the result
    procedure :: get_data => request_get_data     ! (array, [offset]): fills all of the array
    procedure :: put_data => request_put_data     ! (array, [offset])
    procedure :: view_data => request_view_data   ! (bytes): where they lie
    procedure :: reply => request_reply           ! ([bytes])
    procedure :: reply_error => request_reply_error
  end type

  ! Serves requests: answers each before it returns. It may be at work for several at once, each time it waits.
  type, abstract, public :: nssi_handler
  contains
    procedure(serve_request), deferred :: serve
  end type
  abstract interface
    subroutine serve_request(self, request)
      import :: nssi_handler, nssi_request
      class(nssi_handler), intent(inout) :: self
      type(nssi_request), intent(inout) :: request
    end subroutine
  end interface

  ! What an operation's handler is found by; goes with the runtime.
  type :: context_t
    class(nssi_handler), pointer :: handler => null()
    type(context_t), pointer :: next => null()
  end type

  type, public :: nssi_runtime
    private
    type(c_ptr) :: handle = c_null_ptr
    type(context_t), pointer :: contexts => null()
  contains
    procedure :: open => runtime_open                       ! ([options])
    procedure :: close => runtime_close
    procedure :: url => runtime_url                         ! where it can be reached
    procedure :: connect => runtime_connect                 ! (url, peer, [timeout_ms])
    procedure :: connect_to => runtime_connect_to           ! (what, peer, [timeout_ms]): 'file:PATH', 'pmix:NAME', ...
    procedure :: announce => runtime_announce               ! (where, [kind], [timeout_ms]): until close()
    procedure :: disconnect => runtime_disconnect           ! (peer)
    procedure :: sleep => runtime_sleep                     ! (time_ms)
    procedure :: register_memory => runtime_register_memory ! (array, rights, buffer)
    procedure :: allocate_memory => runtime_allocate_memory ! (size_bytes, rights, buffer)
    procedure :: start => runtime_start                     ! (service, op, args, call, ...)
    procedure :: multicast => runtime_multicast             ! (services, op, args, calls, ...)
    procedure :: add_operation => runtime_add_operation     ! before run()
    procedure :: run => runtime_run                         ! serves until stop()
    procedure :: stop => runtime_stop
    procedure :: stop_when_done => runtime_stop_when_done   ! ([timeout_ms])
  end type

contains

  ! --- what both sides of the border need -----------------------------------------------------------------------------

  recursive function or_never(timeout_ms) result(time_ms)
    integer(c_int32_t), intent(in), optional :: timeout_ms
    integer(c_int32_t) :: time_ms
    time_ms = -1
    if (present(timeout_ms)) time_ms = timeout_ms
  end function

  ! Bytes that C owns.
  recursive subroutine point_to(begin, size_bytes, bytes)
    type(c_ptr), intent(in) :: begin
    integer(c_int64_t), intent(in) :: size_bytes
    integer(c_int8_t), pointer, contiguous, intent(out) :: bytes(:)
    integer(c_int8_t), target, save :: none(0)
    if (size_bytes > 0) then
      call c_f_pointer(begin, bytes, [size_bytes])
    else
      bytes => none
    end if
  end subroutine

  recursive function address_of(bytes) result(begin)
    integer(c_int8_t), intent(in), target, contiguous :: bytes(:)
    type(c_ptr) :: begin
    begin = c_null_ptr
    if (size(bytes) > 0) begin = c_loc(bytes(1))
  end function

  recursive function not_contiguous() result(status)
    type(nessie_status) :: status
    status = nessie_error(nessie_invalid_argument, &
      'the elements of the array do not lie one after the other in memory: give all of it, or a contiguous section')
  end function

  ! --- runtimes -------------------------------------------------------------------------------------------------------

  recursive function runtime_open(self, options) result(status)
    class(nssi_runtime), intent(inout) :: self
    type(nssi_options), intent(in), optional :: options
    type(nessie_status) :: status
    type(nssi_rt_options) :: wanted
    character(kind=c_char, len=:), allocatable, target :: transports, settings
    if (present(options)) then
      if (allocated(options%transports)) then
        transports = options%transports // c_null_char
        wanted%transports = c_loc(transports)
      end if
      if (allocated(options%settings)) then
        settings = options%settings // c_null_char
        wanted%settings = c_loc(settings)
      end if
      wanted%fiber_stack_bytes = options%fiber_stack_bytes
      wanted%max_fibers = options%max_fibers
      wanted%connects_only = merge(1, 0, options%connects_only)
      wanted%bulk_quiet_us = options%bulk_quiet_us
      wanted%bulk_longest_hold_us = options%bulk_longest_hold_us
    end if
    status = status_of(nssi_rt_open(wanted, self%handle))
  end function

  recursive function runtime_close(self) result(status)
    class(nssi_runtime), intent(inout) :: self
    type(nessie_status) :: status
    type(context_t), pointer :: first
    status = status_of(nssi_rt_close(self%handle))
    if (.not. status%ok()) return
    self%handle = c_null_ptr
    do while (associated(self%contexts))
      first => self%contexts
      self%contexts => first%next
      deallocate (first)
    end do
  end function

  ! '' if nobody can.
  recursive function runtime_url(self) result(url)
    class(nssi_runtime), intent(in) :: self
    character(len=:), allocatable :: url
    url = nessie_text(nssi_rt_url(self%handle))
  end function

  recursive function runtime_connect(self, url, peer, timeout_ms) result(status)
    class(nssi_runtime), intent(in) :: self
    character(len=*), intent(in) :: url
    integer(c_int64_t), intent(inout) :: peer
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nssi_rt_connect(self%handle, trim(url) // c_null_char, or_never(timeout_ms), peer))
  end function

  recursive function runtime_connect_to(self, what, peer, timeout_ms) result(status)
    class(nssi_runtime), intent(in) :: self
    character(len=*), intent(in) :: what
    integer(c_int64_t), intent(inout) :: peer
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nssi_rt_connect_to(self%handle, trim(what) // c_null_char, or_never(timeout_ms), peer))
  end function

  ! kind: what people call it, in a contact file.
  recursive function runtime_announce(self, where, kind, timeout_ms) result(status)
    class(nssi_runtime), intent(in) :: self
    character(len=*), intent(in) :: where
    character(len=*), intent(in), optional :: kind
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    character(kind=c_char, len=:), allocatable :: called
    called = 'service'
    if (present(kind)) called = trim(kind)
    status = status_of(nssi_rt_announce(self%handle, trim(where) // c_null_char, called // c_null_char, &
      or_never(timeout_ms)))
  end function

  recursive function runtime_disconnect(self, peer) result(status)
    class(nssi_runtime), intent(in) :: self
    integer(c_int64_t), intent(in) :: peer
    type(nessie_status) :: status
    status = status_of(nssi_rt_disconnect(self%handle, peer))
  end function

  recursive function runtime_sleep(self, time_ms) result(status)
    class(nssi_runtime), intent(in) :: self
    integer(c_int32_t), intent(in) :: time_ms
    type(nessie_status) :: status
    status = status_of(nssi_rt_sleep(self%handle, time_ms))
  end function

  recursive function runtime_run(self) result(status)
    class(nssi_runtime), intent(in) :: self
    type(nessie_status) :: status
    status = status_of(nssi_rt_run(self%handle))
  end function

  recursive function runtime_stop(self) result(status)
    class(nssi_runtime), intent(in) :: self
    type(nessie_status) :: status
    status = status_of(nssi_rt_stop(self%handle))
  end function

  ! Refuses new requests (nessie_unavailable), and makes run() return when those that were accepted have been answered and
  ! their callers have the results, after `timeout_ms` at the latest. The next run() takes requests again.
  recursive function runtime_stop_when_done(self, timeout_ms) result(status)
    class(nssi_runtime), intent(in) :: self
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nssi_rt_stop_when_done(self%handle, or_never(timeout_ms)))
  end function

  ! --- bulk buffers ---------------------------------------------------------------------------------------------------

  ! Lends an array, of any rank and type, without a copy, until the buffer is freed. It must be a `target` where it is
  ! declared: a service may change it at any moment. nessie_invalid_argument: its elements do not lie one after the other.
  recursive function runtime_register_memory(self, array, rights, buffer) result(status)
    class(nssi_runtime), intent(in) :: self
    type(*), dimension(..), intent(in), target :: array
    integer(c_int32_t), intent(in) :: rights
    type(nssi_buffer), intent(inout) :: buffer
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: size_bytes
    call nessie_fortran_memory(array, begin, size_bytes)
    status = not_contiguous()
    if (size_bytes >= 0) status = status_of(nssi_rt_register(self%handle, begin, size_bytes, rights, buffer%handle))
  end function

  ! Memory that services on the same node can read in place; c_f_pointer(buffer%memory(), array, shape) makes an array
  ! of it.
  recursive function runtime_allocate_memory(self, size_bytes, rights, buffer) result(status)
    class(nssi_runtime), intent(in) :: self
    integer(c_int64_t), intent(in) :: size_bytes
    integer(c_int32_t), intent(in) :: rights
    type(nssi_buffer), intent(inout) :: buffer
    type(nessie_status) :: status
    status = status_of(nssi_rt_allocate(self%handle, size_bytes, rights, buffer%handle))
  end function

  recursive function buffer_memory(self) result(memory)
    class(nssi_buffer), intent(in) :: self
    type(c_ptr) :: memory
    memory = nssi_rt_buffer_bytes(self%handle)
  end function
  recursive function buffer_size_bytes(self) result(size_bytes)
    class(nssi_buffer), intent(in) :: self
    integer(c_int64_t) :: size_bytes
    size_bytes = nssi_rt_buffer_size(self%handle)
  end function
  ! 0 if it is not open.
  recursive function buffer_rights(self) result(rights)
    class(nssi_buffer), intent(in) :: self
    integer(c_int32_t) :: rights
    rights = nssi_rt_buffer_rights(self%handle)
  end function
  recursive function buffer_free(self) result(status)
    class(nssi_buffer), intent(inout) :: self
    type(nessie_status) :: status
    status = status_of(nssi_rt_free_buffer(self%handle))
    if (status%ok()) self%handle = c_null_ptr
  end function

  ! nessie_invalid_argument: the buffer does not let a service do what an interface says.
  recursive function nssi_lends(buffer, rights) result(status)
    type(nssi_buffer), intent(in) :: buffer
    integer(c_int32_t), intent(in) :: rights
    type(nessie_status) :: status
    if (iand(buffer%rights(), rights) /= rights) status = nessie_error(nessie_invalid_argument, &
      'the bulk buffer is not registered, or not with the rights that the interface asks for: nssi_read for `in`, ' // &
      'nssi_write for `out`')
  end function

  ! --- calls ----------------------------------------------------------------------------------------------------------

  recursive function call_options(buffer, timeout_ms, idempotent, one_way, fail_when_busy) result(options)
    type(nssi_buffer), intent(in), optional :: buffer
    integer(c_int32_t), intent(in), optional :: timeout_ms
    logical, intent(in), optional :: idempotent, one_way, fail_when_busy
    type(nssi_rt_call_options) :: options
    if (present(buffer)) options%buffer = buffer%handle
    if (present(timeout_ms)) options%timeout_ms = timeout_ms
    if (present(idempotent)) options%idempotent = merge(1, 0, idempotent)
    if (present(one_way)) options%one_way = merge(1, 0, one_way)
    if (present(fail_when_busy)) options%when_busy = merge(1, 0, fail_when_busy)
  end function

  ! Sends a request; does not wait. `args` is copied; `buffer` is lent until the call is over. `idempotent`: carrying it
  ! out twice does no harm: it is sent again also to a service that was started anew. `one_way`: the result is not
  ! wanted: the call is over, with an empty result, when its handler begins, and freeing it before does not cancel it;
  ! not with a buffer. `fail_when_busy`: if the service has no room for it, it ends with nessie_busy, and
  ! status%retry_after_ms says when there may be room, instead of waiting.
  recursive function runtime_start(self, service, op, args, call, buffer, timeout_ms, idempotent, one_way, &
    fail_when_busy) result(status)
    class(nssi_runtime), intent(in) :: self
    type(nssi_service), intent(in), target :: service
    integer(c_int32_t), intent(in) :: op
    integer(c_int8_t), intent(in), target, contiguous :: args(:)
    type(nssi_call), intent(inout) :: call
    type(nssi_buffer), intent(in), optional :: buffer
    integer(c_int32_t), intent(in), optional :: timeout_ms
    logical, intent(in), optional :: idempotent, one_way, fail_when_busy
    type(nessie_status) :: status
    type(nssi_rt_call_options) :: options
    options = call_options(buffer, timeout_ms, idempotent, one_way, fail_when_busy)
    status = status_of(nssi_rt_start(self%handle, c_loc(service), op, address_of(args), size(args, kind=c_int64_t), &
      options, call%handle))
    if (status%ok()) call begin(call, options)
  end function

  ! The same request to several services: a call for each, in their order; `calls` has at least as many. Each is waited
  ! for, and freed, like others; nssi_wait_all() waits for all. If it fails, nothing was sent. With clients of an
  ! interface: NAME_async() of each.
  recursive function runtime_multicast(self, services, op, args, calls, buffer, timeout_ms, idempotent, one_way, &
    fail_when_busy) result(status)
    class(nssi_runtime), intent(in) :: self
    type(nssi_service), intent(in), target, contiguous :: services(:)
    integer(c_int32_t), intent(in) :: op
    integer(c_int8_t), intent(in), target, contiguous :: args(:)
    type(nssi_call), intent(inout) :: calls(:)
    type(nssi_buffer), intent(in), optional :: buffer
    integer(c_int32_t), intent(in), optional :: timeout_ms
    logical, intent(in), optional :: idempotent, one_way, fail_when_busy
    type(nessie_status) :: status
    type(nssi_rt_call_options) :: options
    type(c_ptr) :: handles(size(services))
    integer :: i
    if (size(calls) < size(services)) then
      status = nessie_error(nessie_invalid_argument, 'there are more services than calls')
      return
    end if
    if (size(services) == 0) return
    options = call_options(buffer, timeout_ms, idempotent, one_way, fail_when_busy)
    status = status_of(nssi_rt_multicast(self%handle, c_loc(services(1)), size(services, kind=c_int64_t), op, &
      address_of(args), size(args, kind=c_int64_t), options, handles))
    if (.not. status%ok()) return
    do i = 1, size(services)
      calls(i)%handle = handles(i)
      call begin(calls(i), options)
    end do
  end function

  recursive subroutine begin(call, options)
    type(nssi_call), intent(inout) :: call
    type(nssi_rt_call_options), intent(in) :: options
    call%one_way = options%one_way /= 0
    call%told => null()
  end subroutine

  recursive logical function call_is_one_way(self)
    class(nssi_call), intent(in) :: self
    call_is_one_way = self%one_way
  end function

  ! Has callback%over() called once, on a user-level thread, when the call is over, or soon if it is: it may wait, use
  ! the call, free it, and make others. Not if the call is freed before. `callback` is a `target` where it is declared,
  ! and lives until then. One for each call.
  recursive function call_when_over(self, callback) result(status)
    class(nssi_call), intent(inout) :: self
    class(nssi_callback), intent(in), target :: callback
    type(nessie_status) :: status
    integer :: failed
    if (associated(self%told)) then
      status = nessie_error(nessie_exists, 'the call has a callback')
      return
    end if
    allocate (self%told, stat=failed)
    if (failed /= 0) then
      status = nessie_error(nessie_no_memory, 'there is not memory enough for the callback')
      return
    end if
    self%told%callback => callback
    status = status_of(nssi_rt_when_over(self%handle, c_funloc(tell), c_loc(self%told)))
    if (.not. status%ok()) deallocate (self%told)
  end function

  recursive subroutine tell(context) bind(C)
    type(c_ptr), value :: context
    type(told_t), pointer :: told
    class(nssi_callback), pointer :: callback
    call c_f_pointer(context, told)
    callback => told%callback   ! which may free the call, and `told`
    call callback%over()
  end subroutine

  recursive logical function call_is_open(self)
    class(nssi_call), intent(in) :: self
    call_is_open = c_associated(self%handle)
  end function

  recursive function call_test(self, is_over) result(status)
    class(nssi_call), intent(in) :: self
    logical, intent(inout) :: is_over
    type(nessie_status) :: status
    integer(c_int32_t) :: over
    over = 0
    status = status_of(nssi_rt_test(self%handle, over))
    if (status%ok()) is_over = over /= 0
  end function

  ! nessie_timed_out: the result is not here yet, and can be waited for again; or the call's own deadline has passed.
  recursive function call_wait(self, timeout_ms) result(status)
    class(nssi_call), intent(in) :: self
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nssi_rt_wait(self%handle, or_never(timeout_ms)))
  end function

  recursive function call_result(self, bytes) result(status)
    class(nssi_call), intent(in) :: self
    integer(c_int8_t), pointer, contiguous, intent(inout) :: bytes(:)
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: size_bytes
    begin = c_null_ptr
    size_bytes = 0
    status = status_of(nssi_rt_result(self%handle, begin, size_bytes))
    if (status%ok()) call point_to(begin, size_bytes, bytes)
  end function

  recursive function call_take(self, bytes, timeout_ms) result(status)
    class(nssi_call), intent(inout) :: self
    integer(c_int8_t), pointer, contiguous, intent(inout) :: bytes(:)
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status, tested
    logical :: is_over
    status = self%wait(timeout_ms)
    if (status%ok()) then
      status = self%result(bytes)
      return
    end if
    is_over = .true.
    if (status%code == nessie_timed_out) tested = self%test(is_over)
    if (is_over) call self%free()
  end function

  recursive function call_cancel(self) result(status)
    class(nssi_call), intent(in) :: self
    type(nessie_status) :: status
    status = status_of(nssi_rt_cancel(self%handle))
  end function

  recursive subroutine call_free(self)
    class(nssi_call), intent(inout) :: self
    integer(c_int) :: code
    if (c_associated(self%handle)) code = nssi_rt_free_call(self%handle)
    self%handle = c_null_ptr
    if (associated(self%told)) deallocate (self%told)
  end subroutine

  ! Waits until one of the calls is over: calls(which); how it ended, or nessie_timed_out, or nessie_not_found if none is
  ! open. Those that have been freed are skipped.
  recursive function nssi_wait_any(calls, which, timeout_ms) result(status)
    type(nssi_call), intent(in) :: calls(:)
    integer, intent(inout) :: which
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    integer(c_int64_t) :: index
    index = -1
    status = status_of(nssi_rt_wait_any(calls%handle, size(calls, kind=c_int64_t), or_never(timeout_ms), index))
    if (index >= 0) which = int(index) + 1
  end function

  ! Waits for all of them, `timeout_ms` altogether: nessie_ok, or the first error in the array.
  recursive function nssi_wait_all(calls, timeout_ms) result(status)
    type(nssi_call), intent(in) :: calls(:)
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nssi_rt_wait_all(calls%handle, size(calls, kind=c_int64_t), or_never(timeout_ms)))
  end function

  ! --- services -------------------------------------------------------------------------------------------------------

  ! `handler` must outlive the runtime, and is a `target` where it is declared. `reads_args_once`: nssi/runtime.h.
  recursive function runtime_add_operation(self, program, version, provider, op, name, kind, handler, reads_args_once) &
    result(status)
    class(nssi_runtime), intent(inout) :: self
    integer(c_int32_t), intent(in) :: program, version, provider, op, kind
    character(len=*), intent(in) :: name
    class(nssi_handler), intent(in), target :: handler
    logical, intent(in), optional :: reads_args_once
    type(nessie_status) :: status
    character(kind=c_char, len=:), allocatable, target :: c_name
    type(context_t), pointer :: context
    type(nssi_rt_operation) :: operation
    integer :: failed
    c_name = name // c_null_char
    allocate (context, stat=failed)
    if (failed /= 0) then
      status = nessie_error(nessie_no_memory, 'there is not memory enough for the operation')
      return
    end if
    context%handler => handler
    operation = nssi_rt_operation(program, version, provider, op, c_loc(c_name), kind, 0, c_funloc(serve), &
      c_loc(context))
    if (present(reads_args_once)) operation%reads_args_once = merge(1, 0, reads_args_once)
    status = status_of(nssi_rt_add_operation(self%handle, operation))
    if (status%ok()) then
      context%next => self%contexts
      self%contexts => context
    else
      deallocate (context)
    end if
  end function

  recursive subroutine serve(context, handle) bind(C)
    type(c_ptr), value :: context, handle
    type(context_t), pointer :: it
    type(nssi_request) :: request
    call c_f_pointer(context, it)
    request%handle = handle
    call it%handler%serve(request)
  end subroutine

  recursive function request_caller(self) result(peer)
    class(nssi_request), intent(in) :: self
    integer(c_int64_t) :: peer
    peer = nssi_rt_caller(self%handle)
  end function
  ! The caller's process, whatever connection it comes by: 16 random bytes, the same as long as its runtime lives.
  recursive function request_caller_identity(self, identity) result(status)
    class(nssi_request), intent(in) :: self
    integer(c_int8_t), intent(inout) :: identity(16)
    type(nessie_status) :: status
    status = status_of(nssi_rt_caller_identity(self%handle, identity))
  end function
  ! nssi_operator: the caller has proved the operators' credential (setting operator_credential), too.
  recursive function request_role(self) result(role)
    class(nssi_request), intent(in) :: self
    integer(c_int32_t) :: role
    role = nssi_rt_role(self%handle)
  end function
  recursive function request_op(self) result(op)
    class(nssi_request), intent(in) :: self
    integer(c_int32_t) :: op
    op = nssi_rt_op(self%handle)
  end function
  recursive function request_data_bytes(self) result(size_bytes)
    class(nssi_request), intent(in) :: self
    integer(c_int64_t) :: size_bytes
    size_bytes = nssi_rt_data_bytes(self%handle)
  end function
  ! -1: for ever.
  recursive function request_time_left_ms(self) result(time_ms)
    class(nssi_request), intent(in) :: self
    integer(c_int64_t) :: time_ms
    time_ms = nssi_rt_time_left_ms(self%handle)
  end function

  ! ok as long as somebody waits for the result; what happened otherwise, as nssi_rt_check() in nssi/runtime.h says.
  recursive function request_check(self) result(status)
    class(nssi_request), intent(in) :: self
    type(nessie_status) :: status
    status = status_of(nssi_rt_check(self%handle))
  end function

  recursive function request_args(self, bytes) result(status)
    class(nssi_request), intent(in) :: self
    integer(c_int8_t), pointer, contiguous, intent(inout) :: bytes(:)
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: size_bytes
    begin = c_null_ptr
    size_bytes = 0
    status = status_of(nssi_rt_args(self%handle, begin, size_bytes))
    if (status%ok()) call point_to(begin, size_bytes, bytes)
  end function

  ! Fills an array of any rank and type from the caller's buffer, from byte `offset` (0) on. Returns when it can be read;
  ! the handler's fiber is suspended until then.
  recursive function request_get_data(self, array, offset) result(status)
    class(nssi_request), intent(in) :: self
    type(*), dimension(..), intent(inout), target :: array
    integer(c_int64_t), intent(in), optional :: offset
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: size_bytes, from
    from = 0
    if (present(offset)) from = offset
    call nessie_fortran_memory(array, begin, size_bytes)
    status = not_contiguous()
    if (size_bytes >= 0) status = status_of(nssi_rt_get_data(self%handle, begin, size_bytes, from))
  end function

  ! nessie_ok: the caller can read it before it gets the result.
  recursive function request_put_data(self, array, offset) result(status)
    class(nssi_request), intent(in) :: self
    type(*), dimension(..), intent(in), target :: array
    integer(c_int64_t), intent(in), optional :: offset
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: size_bytes, to
    to = 0
    if (present(offset)) to = offset
    call nessie_fortran_memory(array, begin, size_bytes)
    status = not_contiguous()
    if (size_bytes >= 0) status = status_of(nssi_rt_put_data(self%handle, begin, size_bytes, to))
  end function

  ! All of the caller's buffer, where it lies, while the handler runs. nessie_unsupported: it cannot be read there.
  recursive function request_view_data(self, bytes) result(status)
    class(nssi_request), intent(in) :: self
    integer(c_int8_t), pointer, contiguous, intent(inout) :: bytes(:)
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: size_bytes
    begin = c_null_ptr
    size_bytes = 0
    status = status_of(nssi_rt_view_data(self%handle, begin, size_bytes))
    if (status%ok()) call point_to(begin, size_bytes, bytes)
  end function

  recursive function request_reply(self, bytes) result(status)
    class(nssi_request), intent(in) :: self
    integer(c_int8_t), intent(in), optional, target, contiguous :: bytes(:)
    type(nessie_status) :: status
    if (present(bytes)) then
      status = status_of(nssi_rt_reply(self%handle, address_of(bytes), size(bytes, kind=c_int64_t)))
    else
      status = status_of(nssi_rt_reply(self%handle, c_null_ptr, 0_c_int64_t))
    end if
  end function

  ! `error`, which the caller's wait gives as it is here.
  recursive function request_reply_error(self, error) result(status)
    class(nssi_request), intent(in) :: self
    type(nessie_status), intent(in) :: error
    type(nessie_status) :: status
    character(len=:), allocatable :: message
    message = ''
    if (allocated(error%message)) message = error%message
    status = status_of(nssi_rt_reply_error(self%handle, error%code, error%scope, error%cause, message // c_null_char))
  end function
end module
