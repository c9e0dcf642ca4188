import { spread } from '../../statistics.ts'
import type { Results } from '../results.ts'
import { type VariantId, variants } from '../variants.ts'
import { digits, table, withSpread } from './table.ts'

/** The code of each limiter, and the CPU of a cold start. */
export function startText({ sizes = [], coldStarts = {} }: Results): string {
  const head = ['limiter', 'CPU of a cold start, ms', 'library, KiB', 'a Worker with it, KiB']
  const ids = Object.keys({
    ...coldStarts,
    ...Object.fromEntries(sizes.map(({ id }) => [id, id])),
  }) as VariantId[]
  const lines = ids.map((id) => {
    const size = sizes.find((one) => one.id === id)
    const cpu = coldStarts[id]
    return [
      variants[id].name,
      withSpread(cpu && spread(cpu)),
      size ? digits(size.library) : '–',
      size ? digits(size.worker) : '–',
    ]
  })
  return [
    '### Start and code',
    'CPU of the process of workerd until it has answered its first request. Code is minified and compressed (gzip); the library is without Hono.',
    table(head, lines),
  ].join('\n\n')
}
