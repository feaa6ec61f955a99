/// A number for what decided an answer: an answer is right by other rules if these give it the same number. 0: no answer to
/// the question is right, since nobody is asked for it.
///
/// It is the same over restarts. Two different bases have the same number once in four thousand million times.
public typealias Basis = UInt32
