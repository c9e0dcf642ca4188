/** Random policies. */
import type { Draw } from './draw.ts'

type Fields = Record<string, unknown>

/** True if both sides have a feature. */
export type Has = (feature: string) => boolean

/** A random condition. Most are met by a good part of the requests. */
export function condition({ pick, chance }: Draw): Fields {
  const one = () =>
    pick<Fields>(
      { path: '/a/*' },
      { path: '/a/:id' },
      { path: ['/b', '/c'] },
      { method: ['POST'] },
      { method: 'GET' },
      { header: { 'x-user': 'u1' } },
      { header: { 'X-User': ['u2', 'u3*'], accept: true } },
      { query: { q: '1' } },
      { host: '*.example' },
      { host: 'other.example' },
      { ip: '203.0.113.0/31' },
      { ip: ['2001:db8::/32', '198.51.100.7'] },
      { country: ['DE', 'FR'] },
      { asn: 64500 },
      { verifiedBot: true },
      { botScore: { below: 30 } },
      { ja4: 't13d*' },
      {},
    )
  return { ...one(), ...(chance(0.2) && { not: one() }), ...(chance(0.2) && one()) }
}

/** A condition that may read the body. */
const refined = (draw: Draw, has: Has) =>
  has('bodies') && draw.chance(0.15)
    ? draw.pick<Fields>({ body: { method: 'call' } }, { body: { 'user.name': ['u1', 'u2*'] } })
    : condition(draw)

function part({ pick }: Draw, has: Has, isWithId: boolean): unknown {
  return pick<unknown>(
    'ip',
    'ip',
    { ip: { v4: 24, v6: 48 } },
    'header:x-user',
    'header:x-user',
    'cookie:sid',
    'query:q',
    'api-key',
    'path',
    'method',
    'host',
    'country',
    'asn',
    'colo',
    'global',
    userOf,
    laterUserOf,
    ...(isWithId ? ['path:id'] : []),
    ...(has('jwt') ? ['jwt:sub'] : []),
    ...(has('bodies') ? ['body:user.name', { digest: 'body:arguments' }] : []),
  )
}

/** A key function. Its argument is the request, also that of Node, or the context of Hono. */
const userOf = (context: Context) => {
  const { headers } = 'headers' in context ? context : context.req.raw
  return headers instanceof Headers ? headers.get('x-user') : (headers['x-user'] ?? null)
}
const laterUserOf = async (context: Context) => userOf(context)?.length
type Context = Request | { req: { raw: Request } } | { headers: Record<string, string> }

function cost(draw: Draw, has: Has): unknown {
  const { pick, whole } = draw
  const rules = () =>
    Array.from({ length: whole(1, 3) }, () => ({ ...condition(draw), cost: whole(0, 4) }))
  return pick<unknown>(
    2,
    0,
    rules(),
    { rules: rules(), otherwise: 2, max: 3 },
    { header: 'x-price', otherwise: 1 },
    { header: 'x-price', rules: rules(), response: 'x-cost' },
    { otherwise: 3, response: 'x-cost' },
    { otherwise: 4, response: 'x-cost', rules: rules() },
    ...(has('bodies')
      ? [
          { response: 'bytes', otherwise: 2, max: 40 },
          { body: 'max_tokens', max: 5 },
          { usage: 'usage.total', max: 6 },
          { usage: { 'usage.in': 0.5, 'usage.out': 2 }, otherwise: 1, max: 8 },
        ]
      : []),
  )
}

const refusal = ({ pick }: Draw, has: Has): unknown =>
  pick<unknown>(
    (decision: { reason: string }) => new Response(`own ${decision.reason}`, { status: 420 }),
    ...(has('refusals')
      ? [
          { status: 418, body: { text: 'no: {{policy}}, {{retryAfter}}' } },
          {
            body: { json: { limit: '{{limit}}', left: '{{remaining}}' } },
            headers: { 'x-own': '1' },
          },
          'json-rpc',
        ]
      : []),
  )

/** What depends on the response of the origin, which excludes leases and slots. */
const isByResponse = ({ countOnly, cost }: Fields) =>
  countOnly !== undefined || /"(response|usage)"/.test(JSON.stringify(cost ?? null))

function counting(draw: Draw, has: Has): Fields {
  const { pick, chance, whole } = draw
  const window = pick('1s', '10s', '1m', '1h')
  if (has('distinct') && chance(0.08)) {
    return {
      distinct: pick('header:x-user', 'query:q', 'cookie:sid'),
      window,
      key: pick('ip', 'global'),
    }
  }
  const algorithm = pick(
    undefined,
    'sliding-window',
    'fixed-window',
    'fixed-window',
    'token-bucket',
    'gcra',
    ...(has('slidingLog') ? ['sliding-log'] : []),
    ...(has('concurrency') ? ['concurrency'] : []),
  )
  if (algorithm === 'fixed-window' && chance(0.35)) {
    return {
      algorithm,
      window: pick('day', 'week', 'month'),
      timeZone: pick(undefined, 'Europe/Berlin', 'America/New_York'),
    }
  }
  return {
    algorithm,
    window,
    ...(algorithm === 'fixed-window' && { align: pick(undefined, 'clock') }),
    ...((algorithm === 'token-bucket' || algorithm === 'gcra') &&
      chance(0.5) && { burst: whole(1, 20) }),
  }
}

/**
 * A random policy. A few are invalid.
 * @param isListed true if bans can be listed
 */
export function policy(draw: Draw, name: string, has: Has, isListed: boolean): Fields {
  const { pick, chance, whole, maybe } = draw
  const counted = counting(draw, has)
  const isSlots = counted.algorithm === 'concurrency'
  const isDistinct = counted.distinct !== undefined
  const match = maybe(0.5, () => refined(draw, has))
  const isWithId = JSON.stringify(match ?? null).includes(':id"') && match?.not === undefined
  const source = () => part(draw, has, isWithId)
  const plans = { free: whole(1, 4), pro: whole(5, 12) }
  const fields: Fields = {
    name,
    // Bans follow refusals.
    limit: whole(1, isListed && chance(0.7) ? 2 : 12),
    key: chance(0.25) ? [source(), source()] : maybe(0.85, source),
    match,
    ...(!isDistinct && chance(0.4) && { cost: cost(draw, has) }),
    ...counted,
    mode: maybe(0.15, () => 'shadow'),
    onMissingKey: maybe(0.35, () => pick<unknown>('refuse', 'skip', 'share', { key: 'ip' })),
    onStoreError: maybe(0.6, () => pick('allow', 'deny', isSlots ? 'deny' : 'local')),
    localShare: maybe(0.2, () => pick(0.5, 0.1)),
    countOnly: maybe(0.15, () => pick<unknown>('4xx', '2xx', [404, '500-503'])),
    reserve: maybe(0.15, () => [{ match: condition(draw), share: 0.5 }, { share: pick(0, 0.25) }]),
    deadline: maybe(0.1, () => '400ms'),
    refusal: maybe(0.1, () => refusal(draw, has)),
    ...(has('overrides') && { overrides: maybe(0.2, () => true) }),
    ...(has('bans') && {
      penalty: maybe(isListed ? 0.6 : 0.2, () =>
        pick<unknown>('manual', {
          after: pick(1, 2),
          within: '1m',
          ban: pick('5s', '2m'),
          max: '10m',
          ...(isListed && chance(0.7) && { list: true }),
        }),
      ),
    }),
    ...(chance(0.15) && {
      plan: pick<unknown>(
        'header:x-plan',
        { key: 'header:x-user', table: 'customers' },
        ...(has('jwt') ? ['jwt:plan'] : []),
      ),
      limits: plans,
    }),
    ...(has('jwt') && chance(0.08) && { limit: { claim: 'quota', max: 10, otherwise: 3 } }),
  }
  const isLeasable =
    !isSlots &&
    !isDistinct &&
    counted.algorithm !== 'sliding-log' &&
    fields.penalty === undefined &&
    !isByResponse(fields)
  if (has('leases') && chance(isLeasable ? 0.2 : 0.005)) {
    fields.lease = { max: whole(2, 5), ttl: pick('2s', '20s') }
  }
  const mayWait = !isSlots && !isDistinct && !fields.lease
  if (has('turns') && chance(mayWait ? 0.15 : 0.005)) {
    fields.wait = pick('500ms', '3s', '20s', '60s')
  }
  if (isSlots && chance(0.95)) {
    if (isByResponse(fields)) fields.cost = 1
    delete fields.countOnly
  }
  return fields
}
