import CSystemd

/// Properties of services on the system bus (sd-bus(3)). It waits for the start of the bus, and up to 5 s for each
/// answer: do not use it on a thread that other work waits for.
@safe struct SystemBus: ~Copyable {
    enum Value: Equatable {
        case number(Int32)
        case flag(Bool)
        case text(String)
        case octets([UInt8])
    }

    /// An object of a service, and the interface of the wanted properties.
    struct Object {
        let service, path, interface: String
    }

    /// The most entries of a list that are read.
    private static let mostEntries = 1024
    private let bus: OpaquePointer

    /// Nil if there is no bus, or none for this user.
    init?() {
        var bus: OpaquePointer?
        guard unsafe csd_bus_open_system(&bus) >= 0, let bus = unsafe bus else { return nil }
        unsafe self.bus = unsafe bus
    }

    deinit { unsafe csd_bus_flush_close_unref(bus) }

    /// A property of one value: `b` a flag, `s` a text. Nil if it is not available.
    func value(_ property: String, of object: Object, _ type: Character) -> Value? {
        unsafe read(property, object) { reply in
            guard unsafe enter(reply, "v", String(type)) else { return nil }
            var types = Substring(String(type))
            return unsafe Self.value(reply, &types)
        }
    }

    /// A property that is a list of structures, whose members have these types: `i` a number, `b` a flag, `s` a text,
    /// `ay` octets. Nil if it is not available.
    func list(_ property: String, of object: Object, _ types: String) -> [[Value]]? {
        unsafe read(property, object) { reply in
            guard unsafe enter(reply, "v", "a(\(types))"), unsafe enter(reply, "a", "(\(types))") else { return nil }
            var entries: [[Value]] = []
            while entries.count < Self.mostEntries, unsafe enter(reply, "r", types) {
                var (entry, left): ([Value], Substring) = ([], types[...])
                while !left.isEmpty {
                    guard let value = unsafe Self.value(reply, &left) else { return nil }
                    entry.append(value)
                }
                entries.append(entry)
                guard unsafe csd_bus_message_exit_container(reply) >= 0 else { return nil }
            }
            return entries
        }
    }

    private func read<Result>(
        _ property: String, _ object: Object, _ take: (OpaquePointer) -> Result?
    ) -> Result? {
        var reply: OpaquePointer?
        guard
            unsafe csystemd_bus_property(bus, object.service, object.path, object.interface, property, &reply) >= 0,
            let reply = unsafe reply
        else { return nil }
        defer { unsafe csd_bus_message_unref(reply) }
        return unsafe take(reply)
    }

    /// Enters a variant (`v`), list (`a`) or structure (`r`).
    private func enter(_ reply: OpaquePointer, _ kind: Character, _ contents: String) -> Bool {
        unsafe csd_bus_message_enter_container(reply, Self.code(kind), contents) > 0
    }

    /// Reads the next value, and removes its type from the types.
    private static func value(_ reply: OpaquePointer, _ types: inout Substring) -> Value? {
        let type = types.removeFirst()
        // Sound: the read value has the size of its type (sd_bus_message_read_basic(3)), and is copied while the
        // message lives.
        switch type {
        case "i", "b":
            var number: Int32 = 0
            guard unsafe csd_bus_message_read_basic(reply, code(type), &number) > 0 else { return nil }
            return type == "i" ? .number(number) : .flag(number != 0)
        case "s":
            var text: UnsafePointer<CChar>?
            guard unsafe csd_bus_message_read_basic(reply, code(type), &text) > 0, let text = unsafe text
            else { return nil }
            return unsafe .text(String(cString: text))
        default:
            var (octets, count) = unsafe (UnsafeRawPointer?.none, 0)
            let element = types.removeFirst()
            guard unsafe csd_bus_message_read_array(reply, code(element), &octets, &count) > 0 else { return nil }
            return unsafe .octets(Array(UnsafeRawBufferPointer(start: octets, count: count)))
        }
    }

    private static func code(_ type: Character) -> CChar { CChar(type.asciiValue ?? 0) }
}
