/** Fields of a request that Next.js removes before it calls the proxy. */
import type { ConfigProblem } from '../../core/base/errors.ts'
import { problemIn } from '../../core/config/parse.ts'

/** Those of Next.js 16: `FLIGHT_HEADERS`, `INTERNAL_QUERY_NAMES`, and `INTERNAL_HEADERS` without `x-nextjs-data`, which it sets again. */
const HIDDEN =
  /^(header:(rsc|next-(router-(state-tree|(segment-)?prefetch)|hmr-refresh|resume)|x-middleware-(rewrite|redirect|set-cookie|skip|override-headers|next)|x-now-route-matches|x-matched-path|x-next-resume-state-length)|query:-rsc)$/

const isHidden = (field: string) => HIDDEN.test(field.toLowerCase().replaceAll('_', '-'))

type Path = (string | number)[]

/** The request fields that options name, such as `header:rsc`, in conditions, keys, costs and sources of an address. */
function fieldsIn(value: unknown, path: Path): [field: string, path: Path][] {
  const name = path.at(-1)
  if (typeof value === 'string') return [[name === 'header' ? `header:${value}` : value, path]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, Array.isArray(value) ? Number(key) : key]
    const isNamed = name === 'header' || name === 'query'
    return isNamed ? [[`${name}:${key}`, at] as [string, Path]] : fieldsIn(inner, at)
  })
}

/** Finds what reads a hidden field, which never has a value. */
export const hiddenIn = (options: object): ConfigProblem[] =>
  ['policies', 'allow', 'deny', 'apiKeys', 'clientAddress', 'shield']
    .flatMap((part) => fieldsIn((options as Record<string, unknown>)[part], [part]))
    .filter(([field]) => isHidden(field))
    .map(([, path]) =>
      problemIn(options, path, 'another field, because Next.js hides this one from the proxy'),
    )
