import fc from 'fast-check'

// A mutant is to be caught, not to be understood: the first counter-example will do.
fc.configureGlobal({ endOnFailure: true, includeErrorInReport: true })
