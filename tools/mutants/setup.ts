import fc from 'fast-check'
import { vi } from 'vitest'

// The modules of the run before may have another fault.
vi.resetModules()

// The first counterexample is enough to detect a mutant, so fast-check does not shrink it.
fc.configureGlobal({ endOnFailure: true, includeErrorInReport: true })
