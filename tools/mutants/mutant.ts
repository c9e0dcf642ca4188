export interface Mutant {
  /** The file from the root of the repository, in `lua/`, `src/`, `tools/` or `packages/`. */
  file: string
  /** A description of the injected fault. */
  fault: string
  /** The text to replace, which must occur exactly once in the file. */
  search: string
  replace: string
  /** The test file that must detect the fault, from the root and without `.test.ts`. It runs in `npm test`. */
  killedBy: string
}

/**
 * Returns a function that makes the mutants of one file.
 * @param file the file from the root of the repository
 * @param folder the folder of the tests that detect its faults
 */
export const mutantsOf =
  (file: string, folder: string) =>
  (fault: string, search: string, replace: string, killedBy: string): Mutant => ({
    file,
    fault,
    search,
    replace,
    killedBy: `${folder}/${killedBy}`,
  })
