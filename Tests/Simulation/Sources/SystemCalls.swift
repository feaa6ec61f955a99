import Base
import Glibc
import SimulatedDispatch

@testable import Transport

// The functions that CKernel.c calls: each is the system call of its name, with a negative error number for a failure.

typealias Raw = UnsafeMutableRawPointer

@_cdecl("sim_clock") func simClock(_ clock: Int32) -> UInt64 {
    clock == CLOCK_REALTIME ? kernel.epoch + kernel.now : kernel.now
}
@_cdecl("sim_random") func simRandom() -> UInt64 { kernel.random.next() }

@_cdecl("sim_epoll_create") func simEpollCreate() -> Int { kernel.open(KernelEpoll()) }
@_cdecl("sim_epoll_ctl")
func simEpollControl(_ epoll: Int32, _ operation: Int32, _ fd: Int32, _ events: UInt32, _ token: UInt64) -> Int {
    (kernel[epoll] as? KernelEpoll)?.control(operation, fd, events, token) ?? -Int(EBADF)
}
@_cdecl("sim_epoll_next")
func simEpollNext(
    _ epoll: Int32, _ start: Int32, _ events: UnsafeMutablePointer<UInt32>, _ token: UnsafeMutablePointer<UInt64>
) -> Int {
    kernel.isIdling()
    guard let found = (kernel[epoll] as? KernelEpoll)?.next(Int(start)) else { return 0 }
    (events.pointee, token.pointee) = (found.events, found.token)
    return found.index
}
@_cdecl("sim_poll") func simPoll(_ first: Int32, _ second: Int32) -> Int {
    let ready = [first, second].filter(Scheduler.isReadable).count
    if ready == 0 { Scheduler.delayNext(until: [first, second]) }
    return ready
}
@_cdecl("sim_eventfd") func simEventDescriptor() -> Int { kernel.open(KernelCounter()) }
@_cdecl("sim_inotify") func simInotify() -> Int { kernel.open(Inotify()) }
@_cdecl("sim_timerfd_create") func simTimerCreate() -> Int { kernel.open(KernelTimer()) }
@_cdecl("sim_timerfd_settime") func simTimerSet(_ fd: Int32, _ at: UInt64) -> Int {
    guard let timer = kernel[fd] as? KernelTimer else { return -Int(EBADF) }
    timer.set(at)
    return 0
}

@_cdecl("sim_read") func simRead(_ fd: Int32, _ bytes: Raw, _ count: Int) -> Int {
    switch kernel[fd] {
    case let counter as KernelCounter:
        guard counter.count > 0 else { return -Int(EAGAIN) }
        bytes.storeBytes(of: counter.count, as: UInt64.self)
        counter.count = 0
        return 8
    case let timer as KernelTimer:
        guard timer.isReadable else { return -Int(EAGAIN) }
        timer.acknowledge()
        bytes.storeBytes(of: 1, as: UInt64.self)
        return 8
    case let inotify as Inotify:
        guard inotify.isReadable else { return -Int(EAGAIN) }
        let events = inotify.take(count)
        bytes.copyMemory(from: events, byteCount: events.count)
        return events.count
    case let file as OpenFile:
        let got = simPread(fd, bytes, count, file.offset)
        file.offset += max(0, got)
        return got
    default: return -Int(EBADF)
    }
}
@_cdecl("sim_write") func simWrite(_ fd: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    switch kernel[fd] {
    case let counter as KernelCounter:
        counter.count += bytes.loadUnaligned(as: UInt64.self)
        return 8
    case let file as OpenFile:
        if kernel.files.isFull { return -Int(ENOSPC) }
        if !kernel.files.isFrozen { file.file.bytes += UnsafeRawBufferPointer(start: bytes, count: count) }
        return count
    default: return -Int(EBADF)
    }
}
@_cdecl("sim_close") func simClose(_ fd: Int32) -> Int { kernel.close(fd) }

// MARK: Files

@_cdecl("sim_open") func simOpen(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int {
    kernel.files.open(String(cString: path), flags)
}
private func fill(
    _ status: (mode: UInt32, size: UInt64, number: UInt64)?, _ mode: UnsafeMutablePointer<UInt32>,
    _ size: UnsafeMutablePointer<UInt64>, _ number: UnsafeMutablePointer<UInt64>
) -> Int {
    guard let status else { return -Int(ENOENT) }
    (mode.pointee, size.pointee, number.pointee) = status
    return 0
}
@_cdecl("sim_stat")
func simStatus(
    _ path: UnsafePointer<CChar>, _ mode: UnsafeMutablePointer<UInt32>, _ size: UnsafeMutablePointer<UInt64>,
    _ number: UnsafeMutablePointer<UInt64>
) -> Int { fill(kernel.files.status(String(cString: path)), mode, size, number) }
@_cdecl("sim_fstat")
func simDescriptorStatus(
    _ fd: Int32, _ mode: UnsafeMutablePointer<UInt32>, _ size: UnsafeMutablePointer<UInt64>,
    _ number: UnsafeMutablePointer<UInt64>
) -> Int {
    let file = (kernel[fd] as? OpenFile)?.file
    return fill(file.map { (S_IFREG | 0o600, UInt64($0.bytes.count), $0.number) }, mode, size, number)
}
@_cdecl("sim_truncate") func simTruncate(_ fd: Int32) -> Int {
    if !kernel.files.isFrozen { (kernel[fd] as? OpenFile)?.file.bytes = [] }
    return 0
}
@_cdecl("sim_pread") func simPread(_ fd: Int32, _ bytes: Raw, _ count: Int, _ offset: Int) -> Int {
    guard let file = (kernel[fd] as? OpenFile)?.file else { return -Int(EBADF) }
    let part = file.bytes.dropFirst(offset).prefix(count)
    part.withUnsafeBytes { if let base = $0.baseAddress { bytes.copyMemory(from: base, byteCount: $0.count) } }
    return part.count
}
@_cdecl("sim_rename") func simRename(_ from: UnsafePointer<CChar>, _ to: UnsafePointer<CChar>) -> Int {
    kernel.files.rename(String(cString: from), String(cString: to))
}
@_cdecl("sim_unlink") func simUnlink(_ path: UnsafePointer<CChar>) -> Int {
    kernel.files.remove(String(cString: path))
}
@_cdecl("sim_inotify_add") func simInotifyAdd(_ fd: Int32, _ path: UnsafePointer<CChar>, _ mask: UInt32) -> Int {
    (kernel[fd] as? Inotify)?.add(String(cString: path)) ?? -Int(EBADF)
}
@_cdecl("sim_inotify_remove") func simInotifyRemove(_ fd: Int32, _ watch: Int32) -> Int {
    (kernel[fd] as? Inotify)?.remove(watch) ?? -Int(EBADF)
}

// MARK: Sockets

private func address(_ name: UnsafeRawPointer?, _ length: Int) -> SocketAddress? {
    name.flatMap { SocketAddress(reading: $0, length: length) }
}
private func write(_ address: SocketAddress, _ name: Raw?, _ length: UnsafeMutablePointer<UInt32>?) {
    if let name, let length { length.pointee = UInt32(address.write(to: name)) }
}

@_cdecl("sim_socket") func simSocket(_ family: Int32, _ type: Int32) -> Int {
    switch (family, type) {
    case (AF_NETLINK, _): kernel.open(NetlinkSocket())
    case (AF_INET, Int32(SOCK_DGRAM.rawValue)), (AF_INET6, Int32(SOCK_DGRAM.rawValue)):
        kernel.open(DatagramPort(isIPv4: family == AF_INET))
    case (AF_INET, _), (AF_INET6, _), (AF_UNIX, _): kernel.open(StreamPort())
    default: -Int(EAFNOSUPPORT)
    }
}
@_cdecl("sim_bind") func simBind(_ fd: Int32, _ name: UnsafeRawPointer, _ length: Int) -> Int {
    guard let address = address(name, length) else { return 0 }
    switch kernel[fd] {
    case let port as DatagramPort: return kernel.network.bind(port, address.endpoint)
    case let port as StreamPort:
        port.local = address.endpoint
        return 0
    default: return -Int(EBADF)
    }
}
@_cdecl("sim_bind_path") func simBindPath(_ fd: Int32, _ path: UnsafePointer<CChar>) -> Int {
    guard let port = kernel[fd] as? StreamPort else { return -Int(EBADF) }
    port.path = String(cString: path)
    return kernel.files.makeSocket(String(cString: path))
}
/// The daemon only looks whether a process listens there.
@_cdecl("sim_connect_path") func simConnectPath(_ fd: Int32, _ path: UnsafePointer<CChar>) -> Int {
    kernel.network.isListening(String(cString: path)) ? 0 : -Int(ECONNREFUSED)
}
@_cdecl("sim_listen") func simListen(_ fd: Int32) -> Int {
    (kernel[fd] as? StreamPort)?.listen() ?? -Int(EBADF)
}
@_cdecl("sim_connect") func simConnect(_ fd: Int32, _ name: UnsafeRawPointer, _ length: Int) -> Int {
    guard let address = address(name, length) else { return -Int(EAFNOSUPPORT) }
    switch kernel[fd] {
    case let port as DatagramPort: return kernel.network.lookUpRoute(port, address.endpoint)
    case let port as StreamPort: return kernel.network.connect(port, address.endpoint)
    default: return -Int(EBADF)
    }
}
@_cdecl("sim_accept") func simAccept(_ fd: Int32, _ name: Raw?, _ length: UnsafeMutablePointer<UInt32>?) -> Int {
    guard let port = kernel[fd] as? StreamPort else { return -Int(EBADF) }
    guard kernel.hasDescriptors else { return -Int(EMFILE) }
    guard let accepted = port.accept() else { return -Int(EAGAIN) }
    write(SocketAddress(accepted.remote), name, length)
    return kernel.open(accepted)
}
@_cdecl("sim_send") func simSend(_ fd: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    switch kernel[fd] {
    case let port as StreamPort: return port.send(Array(UnsafeRawBufferPointer(start: bytes, count: count)))
    case is DatagramPort: return simSendTo(fd, bytes, count, nil, 0)
    case is NetlinkSocket: return count
    default: return -Int(EBADF)
    }
}
@_cdecl("sim_recv") func simReceive(_ fd: Int32, _ bytes: Raw?, _ count: Int) -> Int {
    switch kernel[fd] {
    case let port as StreamPort: port.receive(UnsafeMutableRawBufferPointer(start: bytes, count: count))
    case let socket as NetlinkSocket: socket.receive()
    default: -Int(EBADF)
    }
}
@_cdecl("sim_sendto")
func simSendTo(_ fd: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ name: UnsafeRawPointer?, _ length: Int) -> Int {
    guard let port = kernel[fd] as? DatagramPort, let receiver = address(name, length)?.endpoint ?? port.remote else {
        return -Int(EBADF)
    }
    if let error = port.takeError() { return -Int(error) }
    return kernel.network.send(Array(UnsafeRawBufferPointer(start: bytes, count: count)), from: port, to: receiver)
}
/// The next ICMP error: the octets of the datagram that it quotes.
@_cdecl("sim_next_error") func simNextError(_ fd: Int32, _ bytes: Raw, _ count: Int) -> Int {
    guard let quoted = (kernel[fd] as? DatagramPort)?.takeRefusal() else { return -Int(EAGAIN) }
    let taken = min(count, quoted.count)
    quoted.withUnsafeBytes { if taken > 0 { bytes.copyMemory(from: $0.baseAddress!, byteCount: taken) } }
    return taken
}
@_cdecl("sim_recvfrom")
func simReceiveFrom(
    _ fd: Int32, _ bytes: Raw?, _ count: Int, _ name: Raw?, _ length: UnsafeMutablePointer<UInt32>?
) -> Int {
    guard let port = kernel[fd] as? DatagramPort else { return -Int(EBADF) }
    if let error = port.takeError() { return -Int(error) }
    guard let datagram = port.take() else { return -Int(EAGAIN) }
    let taken = min(count, datagram.bytes.count)
    datagram.bytes.withUnsafeBytes { if taken > 0 { bytes?.copyMemory(from: $0.baseAddress!, byteCount: taken) } }
    write(SocketAddress(datagram.from), name, length)
    return taken
}
@_cdecl("sim_shutdown") func simShutdown(_ fd: Int32) -> Int {
    (kernel[fd] as? StreamPort)?.finish()
    return 0
}
@_cdecl("sim_getsockname") func simName(_ fd: Int32, _ name: Raw, _ length: UnsafeMutablePointer<UInt32>) -> Int {
    switch kernel[fd] {
    case let port as DatagramPort: write(SocketAddress(port.local), name, length)
    case let port as StreamPort: write(SocketAddress(port.local), name, length)
    default: return -Int(EBADF)
    }
    return 0
}
@_cdecl("sim_getsockopt") func simOption(_ fd: Int32, _ level: Int32, _ option: Int32) -> Int {
    guard level == SOL_SOCKET, option == SO_ERROR, let port = kernel[fd] as? StreamPort else { return 0 }
    return Int(port.takeError())
}
