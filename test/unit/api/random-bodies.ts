/** Random request bodies for the decision API: valid ones, and valid ones with one or two errors. */
import fc from 'fast-check'
import { anyUrl } from '../../support/any-text.ts'

const token = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}$/)
const method = fc.oneof(
  fc.constantFrom('GET', 'post', 'PATCH', 'CONNECT', 'trace', 'Track', 'TRACKS', 'M-SEARCH'),
  token,
)
const url = fc.oneof(
  anyUrl(),
  fc.constantFrom(
    'https://a',
    'HTTPS://[2001:db8::1]:8443/x?y',
    'https://a/x#y',
    'http://a:b@c/',
    'http://@c/',
    'https:///a',
    'https://a b/',
    'https://a/ b',
    'https://a\\b',
    'ftp://a/',
    '/a',
    'https://ü.example/ü',
    `https://a/${'x'.repeat(8180)}`,
    `https://a/${'x'.repeat(8182)}`,
    `https://a/${'x'.repeat(8183)}`,
  ),
)
const ip = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom('::ffff:1.2.3.4', '', 'a', '1.2.3.4/8', '[::1]'),
)
const fieldValue = fc.oneof(
  fc.string({ maxLength: 9 }),
  fc.constantFrom('', '\t', '\u00ff', '\u0100', '\n', '\u007f', 'x'.repeat(8192), 'x'.repeat(8193)),
)
const headers = fc.oneof(
  fc.dictionary(token, fieldValue, { maxKeys: 4 }),
  fc
    .constantFrom(100, 101)
    .map((n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`x-${i}`, 'v']))),
)
const optional = { requiredKeys: ['url'] as ['url'] }
export const requests = fc.record(
  {
    method,
    url,
    ip,
    headers,
    country: fc.constantFrom('DE', 'T1', 'xx', 'D', 'DEU', '11'),
    asn: fc.oneof(fc.integer({ min: -1, max: 2 ** 32 }), fc.constantFrom('64500', '0', 'AS1')),
    colo: fc.constantFrom('FRA', 'fra', 'F', 'FRANK'),
  },
  optional,
)

const keyText = fc.oneof(
  fc.string({ maxLength: 9 }),
  fc.constantFrom('x'.repeat(1024), 'x'.repeat(1025), '\ud800'),
)
const keyValue = fc.oneof(keyText, fc.double({ noNaN: true }), fc.integer())
const keys = fc.oneof(
  keyValue,
  fc.array(fc.oneof(keyValue, fc.constant(null)), { maxLength: 3 }),
  fc.constantFrom(15, 16, 17).map((n) => Array(n).fill('x')),
)
const name = fc.oneof(fc.string({ maxLength: 5 }), fc.constantFrom('x'.repeat(64), 'x'.repeat(65)))
/** What looks like a number, and what JavaScript cannot convert to one. */
const uncountable = fc.constantFrom<unknown>('9007199254740993', { toString: 1 }, [{ toString: 1 }])
const whole = fc.oneof(
  fc.integer({ min: -1 }),
  fc.constantFrom(2 ** 51, 2 ** 51 + 1, 2 ** 53, 1.5, Number.POSITIVE_INFINITY),
  uncountable,
)
const more = {
  cost: whole,
  mode: fc.constantFrom('take', 'peek', 'steal'),
  decidedAt: whole,
  slot: fc.oneof(fc.uuid(), fc.string({ maxLength: 3 })),
  for: fc.oneof(
    whole,
    fc.constantFrom(
      '1h',
      '1.5 h',
      '10',
      'h',
      '1 y',
      '30m',
      '1'.repeat(33),
      '1'.repeat(12).concat('s'),
    ),
  ),
}
const byPolicy = fc.record(
  { policy: name, key: keys, plan: name },
  { requiredKeys: ['policy', 'key'] },
)
const byKey = fc.record({ key: keys, plan: name }, { requiredKeys: ['key'] })
const bySubject = fc.record(
  {
    subject: fc.oneof(
      fc.stringMatching(/^[\w-]{15,17}$/),
      fc.constantFrom('', 'x'.repeat(15).concat('='), 'x'.repeat(16).concat('\n')),
    ),
    plan: name,
  },
  { requiredKeys: ['subject'] },
)
const byRequest = fc.record({ request: requests })

/** Adds a random selection of the named fields to a body. */
const withSome = (bodies: fc.Arbitrary<object>, ...names: (keyof typeof more)[]) =>
  fc.tuple(bodies, fc.subarray(names), fc.record(more)).map(([body, names, values]) => ({
    ...body,
    ...Object.fromEntries(names.map((name) => [name, values[name]])),
  }))

const asks = withSome(fc.oneof(byPolicy, byRequest), 'cost', 'mode')
const targets = fc.oneof(byKey, bySubject, byRequest)
const plausible = {
  RequestDescription: requests,
  KeyValues: keys,
  Ask: asks,
  Refund: withSome(fc.oneof(byPolicy, byRequest), 'cost', 'decidedAt', 'slot'),
  Target: targets,
  Ban: fc.tuple(targets, more.for).map(([target, banned]): object => ({ ...target, for: banned })),
  Override: fc.record({ limit: whole, for: more.for }),
  Settlement: fc
    .tuple(
      fc.oneof(fc.constant({ policy: 'a', key: 'x' }), byPolicy, byRequest),
      fc.record({ decidedAt: fc.oneof(fc.nat(), whole), limits: fc.constantFrom<unknown>([], 1) }),
      fc.constantFrom<object>({}, { used: 1 }, { used: '1' }, { used: { toString: 1 } }),
    )
    .map(([about, decision, used]) => ({ ...about, decision, ...used })),
  Try: byRequest,
}
export type BodyName = keyof typeof plausible

/** Any JSON value. `JSON.parse` makes `__proto__` an ordinary field. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc
    .constantFrom('{"__proto__":1}', '{"constructor":{}}', '[[]]', '{"length":1}', '{"toString":1}')
    .map((text) => JSON.parse(text)),
)

/** Removes, replaces or adds a value at one place of the body. */
function disturb(
  body: unknown,
  [position, action, junkValue, newField]: [number, number, unknown, string],
): unknown {
  if (typeof body !== 'object' || body === null) return junkValue
  const names = Object.keys(body)
  const name = names[position % (names.length + 1)]
  if (Array.isArray(body))
    return body.map((item, i) =>
      i === position % body.length
        ? disturb(item, [position + 1, action, junkValue, newField])
        : item,
    )
  if (name === undefined) return { ...body, [newField]: junkValue }
  const { [name]: value, ...rest } = body as Record<string, unknown>
  if (action === 0) return rest
  if (action === 1) return { ...rest, [name]: junkValue }
  return { ...rest, [name]: disturb(value, [position + 1, action - 1, junkValue, newField]) }
}

const disturbance = fc.tuple(
  fc.nat(9),
  fc.nat(4),
  junk,
  fc.constantFrom('x', 'request', 'policy', 'key', 'subject', '__proto__', 'toString', 'mode'),
)

/** Bodies, most of them for the named schema. Without a name, bodies for any schema. */
export function bodiesFor(schema?: BodyName): fc.Arbitrary<unknown> {
  const all: fc.Arbitrary<unknown> = fc.oneof(...Object.values(plausible))
  const own: fc.Arbitrary<unknown> = schema ? plausible[schema] : all
  return fc.oneof(
    { weight: 6, arbitrary: own },
    { weight: 4, arbitrary: fc.tuple(own, disturbance).map(([body, how]) => disturb(body, how)) },
    { weight: 2, arbitrary: all },
    { weight: 1, arbitrary: fc.array(own, { maxLength: 3 }) },
    { weight: 1, arbitrary: junk },
  )
}
