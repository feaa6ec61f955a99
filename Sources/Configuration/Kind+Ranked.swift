import Base
import DNSWire

extension Kind where Value == Settings.Cache.Ranked {
    /// A name that stands for those under it, too, and where their addresses are connected to.
    static var ranked: Kind {
        .text(
            "NAME:PORT, such as \"www.example.com:443\", which stands for the names under it too",
            parse: { text in
                guard let colon = text.lastIndex(of: ":"), let name = Name(String(text[..<colon])), name.isHostname,
                    IPAddress(text[..<colon]) == nil,
                    let port = Endpoint("0.0.0.0" + text[colon...])?.port, port > 0
                else { return nil }
                return Settings.Cache.Ranked(name, port: port)
            },
            show: { "\($0.name):\($0.port)" })
    }
}
