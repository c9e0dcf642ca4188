interface LruEntry<T> {
  key: string
  value: T
  older: LruEntry<T>
  newer: LruEntry<T>
}

export interface LruOptions<T> {
  /** Upper bound of the sum of all sizes. */
  maxSize: number
  /** The size of an entry. Defaults to 1, which bounds the number of entries. */
  sizeOf?: (key: string) => number
  onEvict?: (value: T) => void
}

/**
 * A map of bounded size that evicts the least recently used entries. A linked list keeps the order of use, because deleting a key and
 * inserting it again takes twice as long.
 */
export class LruCache<T> {
  readonly #entries = new Map<string, LruEntry<T>>()
  /** Sentinel of the circular list: its neighbors are the newest and the oldest entry. */
  readonly #ends = {} as LruEntry<T>
  readonly #options: Required<LruOptions<T>>
  #size = 0

  constructor({ maxSize, sizeOf = () => 1, onEvict = () => {} }: LruOptions<T>) {
    this.#options = { maxSize, sizeOf, onEvict }
    this.#ends.older = this.#ends.newer = this.#ends
  }

  /** The number of entries. */
  get count(): number {
    return this.#entries.size
  }

  get(key: string): T | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    unlink(entry)
    this.#link(entry)
    return entry.value
  }

  /** Reads a value without marking it as used. */
  peek(key: string): T | undefined {
    return this.#entries.get(key)?.value
  }

  set(key: string, value: T): void {
    this.delete(key)
    const entry = { key, value } as LruEntry<T>
    this.#entries.set(key, entry)
    this.#link(entry)
    const { maxSize, sizeOf, onEvict } = this.#options
    this.#size += sizeOf(key)
    while (this.#size > maxSize) {
      const oldest = this.#ends.newer
      this.delete(oldest.key)
      onEvict(oldest.value)
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    unlink(entry)
    this.#entries.delete(key)
    this.#size -= this.#options.sizeOf(key)
  }

  /** Removes the entries that a predicate selects and returns their values. Does not call `onEvict`. */
  removeIf(isRemoved: (key: string, value: T) => boolean): T[] {
    const removed = [...this.#entries.values()].filter(({ key, value }) => isRemoved(key, value))
    for (const { key } of removed) this.delete(key)
    return removed.map(({ value }) => value)
  }

  #link(entry: LruEntry<T>): void {
    entry.older = this.#ends.older
    entry.newer = this.#ends
    entry.older.newer = entry
    this.#ends.older = entry
  }
}

function unlink<T>({ older, newer }: LruEntry<T>): void {
  older.newer = newer
  newer.older = older
}
