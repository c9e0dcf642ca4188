const FIRST_ROWS = 1_000

/** Rows of numbers in one array. They take less memory than objects, and to change them makes no garbage. */
export class Rows {
  /** The numbers. The array is another one after `add`. */
  cells: Float64Array
  readonly #width: number
  readonly #free: number[] = []
  #end = 0

  /** @param width the numbers of a row */
  constructor(width: number) {
    this.#width = width
    this.cells = new Float64Array(FIRST_ROWS * width)
  }

  /** Adds a row of zeros. Returns the index of its first number. */
  add(): number {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const at = this.#end
    this.#end += this.#width
    if (this.#end > this.cells.length) {
      const cells = new Float64Array(2 * this.cells.length)
      cells.set(this.cells)
      this.cells = cells
    }
    return at
  }

  remove(at: number): void {
    this.cells.fill(0, at, at + this.#width)
    this.#free.push(at)
  }
}
