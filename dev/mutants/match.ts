import type { Mutant } from './mutant.ts'

/** Mutants of `src/match/`. */
export const matchMutants: Mutant[] = []
