import Transport

extension ForwarderLoop {
    /// Closes the connections to servers and stops the loop, both at the very end of a turn: no work comes in between,
    /// or after, that would open new ones. From any thread.
    /// - Parameter stopped: Called once that is done.
    func stop(_ stopped: @escaping @Sendable () -> Void) {
        drain(within: 0) { [self] in
            close()
            loop.stop(stopped)
        }
    }
}
