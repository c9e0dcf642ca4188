interface LruOptions<T> {
  /** Upper bound of the sum of all sizes. */
  maxSize: number
  /** The size of an entry. Defaults to 1, which bounds the number of entries. */
  sizeOf?: (key: string) => number
  onEvict?: (value: T) => void
}

/** A map of bounded size that evicts the least recently used entries. A map keeps the order of its keys, so the oldest is the first. */
export class LruCache<T> {
  readonly #entries = new Map<string, T>()
  readonly #options: Required<LruOptions<T>>
  #size = 0

  constructor({ maxSize, sizeOf = () => 1, onEvict = () => {} }: LruOptions<T>) {
    this.#options = { maxSize, sizeOf, onEvict }
  }

  get count(): number {
    return this.#entries.size
  }

  get(key: string): T | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined && this.#entries.delete(key)) this.#entries.set(key, value)
    return value
  }

  /** Reads a value without marking it as used. */
  peek(key: string): T | undefined {
    return this.#entries.get(key)
  }

  set(key: string, value: T): void {
    this.delete(key)
    this.#entries.set(key, value)
    const { maxSize, sizeOf, onEvict } = this.#options
    this.#size += sizeOf(key)
    for (const [oldest, evicted] of this.#entries) {
      if (this.#size <= maxSize) break
      this.delete(oldest)
      onEvict(evicted)
    }
  }

  delete(key: string): void {
    if (this.#entries.delete(key)) this.#size -= this.#options.sizeOf(key)
  }

  /** Removes the entries that a predicate selects and returns their values. Does not call `onEvict`. */
  removeIf(isRemoved: (key: string, value: T) => boolean): T[] {
    const removed = [...this.#entries].filter(([key, value]) => isRemoved(key, value))
    for (const [key] of removed) this.delete(key)
    return removed.map(([, value]) => value)
  }
}
