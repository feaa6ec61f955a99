import Base
import TestSupport

/// DNS over HTTPS, on the needed frames of HTTP/2 (RFC 9113): questions are in bodies, so no field is read.
final class HTTP2Speaker: Speaker {
    private weak var end: ServerEnd?
    private var buffer: [UInt8] = []
    private var hasBegun = false
    private var bodies: [UInt32: [UInt8]] = [:]
    private var isGone = false

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    init(_ end: ServerEnd) { self.end = end }

    func heard(_ bytes: [UInt8]) {
        buffer += bytes
        if !hasBegun {
            guard buffer.count >= Self.preface.count else { return }
            guard buffer.starts(with: Self.preface) else { return judge.fault("no preface of HTTP/2") }
            buffer.removeFirst(Self.preface.count)
            hasBegun = true
            say(4, 0, 0, [])
        }
        while buffer.count >= 9 {
            let length = Int(buffer[0]) << 16 | Int(buffer[1]) << 8 | Int(buffer[2])
            guard buffer.count >= 9 + length else { return }
            let frame = Array(buffer[..<(9 + length)])
            buffer.removeFirst(9 + length)
            take(frame[3], frame[4], frame[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }, Array(frame[9...]))
        }
    }

    private func say(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) {
        end?.say(Self.frame(type, flags, stream, payload))
    }

    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        var frame: [UInt8] = []
        frame.append(payload.count, octets: 3)
        frame += [type, flags]
        frame.append(stream, octets: 4)
        return frame + payload
    }

    private func take(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) {
        switch type {
        case 0:
            bodies[stream, default: []] += payload
            if !payload.isEmpty {
                var window: [UInt8] = []
                window.append(payload.count, octets: 4)
                say(8, 0, 0, window)
            }
            if flags & 1 != 0, let body = bodies.removeValue(forKey: stream) { asked(body, stream) }
        case 3: bodies[stream] = nil
        case 4 where flags & 1 == 0: say(4, 1, 0, [])
        case 6 where flags & 1 == 0: say(6, 1, 0, payload)
        default: break
        }
    }

    private func asked(_ body: [UInt8], _ stream: UInt32) {
        guard let host = end?.host, !isGone else { return }
        guard let query = DNSQuery(body) else { return judge.fault("\(host.name) is sent a body that is no query") }
        if query.id != 0 { judge.fault("\(host.name) is sent an id over HTTPS") }
        judge.asked(host, query.name, query.type)
        if host.has(.hangsUp) {
            isGone = true
            end?.close()
            return
        }
        let isLeaving = host.isGoingAway && end?.hasAnswered ?? false
        if isLeaving || host.mayDo(.goesAway) {
            isGone = true
            if isLeaving {
                host.isGoingAway = false
                judge.leaves(host)
            }
            var last: [UInt8] = []
            last.append(
                stream < 3 ? 0 : stream - 2 * UInt32(1 + kernel.network.chance.below(Int(stream) / 2)), octets: 4)
            say(7, 0, 0, last + [0, 0, 0, 0])
            // Or it waits until the client ends the connection.
            let soon = kernel.network.milliseconds(0...200)
            kernel.after(kernel.network.chance.below(2) == 0 ? soon : soon + 30_000_000_000) { [weak end] in
                end?.close()
            }
            return
        }
        if host.mayDo(.resetsStreams) {
            return say(3, 0, stream, [0, 0, 0, [7, 2, 8][kernel.network.chance.below(3)]])
        }
        kernel.after(kernel.network.milliseconds(0...20)) { [self] in answer(query, stream, host) }
    }

    private func answer(_ query: DNSQuery, _ stream: UInt32, _ host: Host) {
        guard let end else { return }
        if host.mayDo(.tooOften) { return say(1, 5, stream, [0x08, 3] + "429".utf8) }
        if host.has(.broken) { return say(1, 5, stream, [0x08, 3] + "\(host.brokenStatus)".utf8) }
        guard let answer = DNSServer.answer(query, at: host, isStream: true) else { return }
        let media = Array("application/dns-message".utf8)
        end.hasAnswered = true
        let head = Self.frame(1, 4, stream, [0x88, 0x0F, 0x10, UInt8(media.count)] + media)
        let frames = head + Self.frame(0, 1, stream, answer)
        for _ in 0..<(host.mayDo(.twice) ? 2 : 1) { end.say(frames) }
        if host.mayDo(.closes) { end.close(isCut: kernel.network.chance.below(2) == 0) }
    }
}
