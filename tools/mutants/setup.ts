import fc from 'fast-check'

// The first counterexample is enough to detect a mutant, so fast-check does not shrink it.
fc.configureGlobal({ endOnFailure: true, includeErrorInReport: true })
