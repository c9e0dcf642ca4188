import type { Mutant } from './mutant.ts'

/** Mutants of `src/store/`. */
export const storeMutants: Mutant[] = []
