/// A number for the conditions that decided an answer: under other rules an answer is right if these give it the same
/// number. 0: no answer to the question is right, since no server is asked for it.
///
/// It is stable over restarts. Two different bases have the same number once in four thousand million times.
public typealias Basis = UInt32
