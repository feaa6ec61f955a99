/// Who leaves the processor to an event loop for a moment, so that the loop does much in one turn.
public protocol LoopWaiter: Sendable {
    /// Whether it does so now. From any thread.
    var isAway: Bool { get }
    /// Ends the moment, if there is one. Called when the loop has nothing left to do; from any thread.
    func goOn()
}
