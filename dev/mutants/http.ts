import type { Mutant } from './mutant.ts'

/** Mutants of `src/http/`. */
export const httpMutants: Mutant[] = []
