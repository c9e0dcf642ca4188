import { ORIGIN_MS, REDIS_MS } from '../legs/parallel.ts'
import { added, figure, type Results } from '../results.ts'
import { type VariantId, variants } from '../variants.ts'
import { table, withSign, withSpread } from './table.ts'

/** The results of `check: 'parallel'`. */
export function parallelText({ parallel = {} }: Results): string {
  const lines = (Object.keys(parallel) as VariantId[]).map((id) => [
    variants[id].name,
    withSpread(figure(parallel, id, ({ p50 }) => p50)),
    id === 'ours-origin' ? '–' : withSign(added(parallel, id, 'ours-origin', ({ p50 }) => p50)),
  ])
  const title = `### One request at a time, an origin ${ORIGIN_MS} ms away, Redis ${REDIS_MS} ms away`
  const head = ['limiter', 'p50, ms', 'p50 over the origin alone, ms']
  return `${title}\n\n${table(head, lines)}`
}
