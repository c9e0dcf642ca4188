export interface Mutant {
  /** The file in `lua/`. */
  file: string
  /** A description of the injected fault. */
  fault: string
  /** The text to replace, which must occur exactly once in the file. */
  search: string
  replace: string
  /** The test file in `test/script/` that must detect the fault. */
  killedBy: string
}
