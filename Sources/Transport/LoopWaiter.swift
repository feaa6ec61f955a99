/// A thread that leaves its processor to an event loop for a moment, so that the loop does much in one turn.
public protocol LoopWaiter: Sendable {
    /// Whether the thread pauses now. May be called from any thread.
    var isAway: Bool { get }
    /// Ends the pause, if there is one. Called when the loop has no work left; from any thread.
    func goOn()
}
