import { UsageError } from './options.ts'

/** The option `--store` of commands. */
export const STORE_OPTION = { store: { type: 'string' } } as const

/**
 * True for `--store durable-objects`, false for `--store redis` and without the option.
 * @throws {UsageError} for another store
 */
export function countsInObjects(store: string | undefined): boolean {
  if (store === undefined || store === 'redis') return false
  if (store === 'durable-objects') return true
  throw new UsageError(
    `--store: expected "redis" or "durable-objects", got ${JSON.stringify(store)}`,
  )
}
