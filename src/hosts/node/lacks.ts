import { contains } from '../../core/base/contains.ts'
import type { ConfigProblem } from '../../core/base/errors.ts'
import { type Config, type Lack, type Policy, problemIn } from '../../core/config/parse.ts'
import { countsBytes } from '../../core/config/schema/reads.ts'
import type { ReadAddress } from '../../core/request/client-address.ts'

/** The fields that Next.js 16 removes before it calls the proxy: `FLIGHT_HEADERS`, `INTERNAL_QUERY_NAMES`, and `INTERNAL_HEADERS` without `x-nextjs-data`, which it sets again. */
const HIDDEN =
  /^(header:(rsc|next-(router-(state-tree|(segment-)?prefetch)|hmr-refresh|resume)|x-middleware-(rewrite|redirect|set-cookie|skip|override-headers|next)|x-now-route-matches|x-matched-path|x-next-resume-state-length)|query:-rsc)$/

type NamedField = [field: string, path: (string | number)[]]

/** The request fields that options name, such as `header:rsc`, in conditions, keys, costs and sources of an address. */
function fieldsIn(value: unknown, path: NamedField[1]): NamedField[] {
  const name = path.at(-1)
  if (typeof value === 'string') return [[name === 'header' ? `header:${value}` : value, path]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, Array.isArray(value) ? Number(key) : key]
    const isNamed = name === 'header' || name === 'query'
    return isNamed ? [[`${name}:${key}`, at] as NamedField] : fieldsIn(inner, at)
  })
}

/** Finds what reads a hidden field, which never has a value. */
const hiddenIn = (options: object): ConfigProblem[] =>
  ['policies', 'allow', 'deny', 'apiKeys', 'clientAddress', 'shield']
    .flatMap((part) => fieldsIn((options as Record<string, unknown>)[part], [part]))
    .filter(([field]) => HIDDEN.test(field.toLowerCase().replaceAll('_', '-')))
    .map(([, path]) =>
      problemIn(options, path, 'another field, because Next.js hides this one from the proxy'),
    )

/** A field of a policy with the values that need something, and what to write instead. Defaults to nothing. */
type Need = [path: string, isNeeded: (policy: Policy) => boolean, instead?: string]

const lacking =
  (needs: readonly Need[], reason: string): Lack =>
  (options, { policies }) =>
    policies.flatMap((policy, index) =>
      needs.flatMap(([path, isNeeded, instead = 'nothing']) => {
        const at = ['policies', index, ...path.split('.')]
        return isNeeded(policy) ? [problemIn(options, at, `${instead}, because ${reason}`)] : []
      }),
    )

/** The status and the header fields of the response. */
const needResponse: readonly Need[] = [
  ['countOnly', ({ countOnly }) => countOnly !== undefined],
  ['cost.response', ({ cost }) => cost.response !== undefined],
  [
    'algorithm',
    ({ algorithm }) => algorithm === 'concurrency',
    'an algorithm that counts requests in a window',
  ],
]

/** The body of the response. */
const needBody: readonly Need[] = [
  ['cost.response', countsBytes],
  ['cost.usage', ({ cost }) => cost.usage !== undefined],
]

/** Node's servers write their responses themselves. */
export const ofNode: Lack = lacking(
  needBody,
  'sluice/node does not see the body of the response: use createSluice, and pass the Response to finish',
)

const unseen = 'the proxy of Next.js does not see the response'
export const ofNext: readonly Lack[] = [
  lacking(needResponse, unseen),
  lacking(needBody, unseen),
  hiddenIn,
]

/** @throws {ConfigError} outside of Cloudflare, if a configuration uses the address of the client, and does not say where it comes from */
export function checkAddress(config: Config, readAddress: ReadAddress): void {
  if (config.clientAddress !== undefined || !usesAddress(config)) return
  readAddress({ request: new Request('http://localhost/'), remoteAddress: undefined })
}

const usesAddress = ({ policies, allow, deny, shield }: Config) =>
  contains([policies, allow, deny, shield], ({ source, ip }) => source === 'ip' || ip !== undefined)
