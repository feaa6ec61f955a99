import Transport

extension ForwarderLoop {
    /// Closes what is open to servers and stops the loop, both at the very end of a turn: no work comes in between, or behind,
    /// by which something would be opened anew. From any thread.
    /// - Parameter stopped: called once that is done.
    func stop(_ stopped: @escaping @Sendable () -> Void) {
        drain(within: 0) { [self] in
            close()
            loop.stop(stopped)
        }
    }
}
