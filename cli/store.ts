/** The option `--store` of commands. */
export const STORE_OPTION = { store: { type: 'string' } } as const

/**
 * True for `--store durable-objects`, false for `--store redis` and without the option.
 * @throws Error for another store
 */
export function countsInObjects(store: string | undefined): boolean {
  if (store === undefined || store === 'redis') return false
  if (store === 'durable-objects') return true
  throw new Error(`--store: expected "redis" or "durable-objects", got ${JSON.stringify(store)}`)
}
