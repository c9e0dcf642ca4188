import type { Mutant } from './mutant.ts'

/** Mutants of `src/limiter/`. */
export const limiterMutants: Mutant[] = []
