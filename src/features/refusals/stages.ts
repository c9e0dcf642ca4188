/** Writes the response to a refused request by its templates. */
import { PLACEHOLDER, type RefusalOptions } from '../../core/config/schema/refusal-fields.ts'
import type { Feature } from '../../core/feature.ts'
import { escapeHtml, pageOf } from '../../core/respond/page.ts'
import { seconds } from '../../core/respond/ratelimit-fields/sets.ts'
import type { ErrorWriter, Refused } from '../../core/respond/refusal.ts'
import { type BodyKind, mediaTypes, preferred } from './accept.ts'

/** The values of the placeholders. A value that is unknown is absent. */
type Values = Record<string, unknown>
const kinds = Object.keys(mediaTypes) as BodyKind[]

export async function write(
  own: RefusalOptions,
  refused: Refused,
  errorBody: ErrorWriter | undefined,
): Promise<Response> {
  const { request, standard } = refused
  const format = typeof own.body === 'string' ? own.body : undefined
  const error = format && (await errorBody!(format, request, await standard.clone().json()))
  // Only the client of a protocol reads an error in a response of status 200.
  const status =
    (error?.isAnswer === false && own.status === 200 ? undefined : own.status) ?? standard.status
  const values = valuesOf(refused, status)
  const headers = new Headers()
  for (const [name, text] of Object.entries(own.headers ?? {})) {
    const value = fill(text, values)
    if (value !== undefined) headers.set(name, value.replace(/[^ -~]/g, ' ')) // so that no value ends the field
  }
  const send = (body: string, type: string) => {
    headers.set('Content-Type', type)
    return new Response(body, { status, headers })
  }
  if (error) return send(JSON.stringify(error.body), error.type)

  const bodies = Object(own.body) as { [kind in BodyKind]?: unknown }
  const given = kinds.filter((kind) => bodies[kind] !== undefined)
  // An own page alone is for the clients that name HTML. The others get the problem document.
  const isForAll = given.length > 0 && given[0] !== 'html'
  const accept = request.headers.get('accept') ?? '*/*'
  const kind = preferred(accept, isForAll ? given : ['json', 'html'])
  const template = bodies[kind]
  const body = template === undefined ? undefined : filled(kind, template, values)
  if (body !== undefined) return send(body, `${mediaTypes[kind]};charset=utf-8`)
  const type = standard.headers.get('Content-Type')!
  if (kind !== 'html') return send(JSON.stringify({ ...(await standard.json()), status }), type)
  const page = await pageOf(standard)
  headers.set('Content-Security-Policy', page.headers.get('Content-Security-Policy')!)
  return send(await page.text(), page.headers.get('Content-Type')!)
}

/** The values at the time of the decision. Durations are in seconds. */
function valuesOf({ decision, limit, standard }: Refused, status: number): Values {
  const wait = standard.headers.get('Retry-After')
  return {
    policy: decision.denied?.by,
    ...limit,
    window: limit && seconds(limit.windowMs),
    retryAfter: wait === null ? undefined : Number(wait),
    reason: decision.reason,
    status,
  }
}

/** Returns nothing for a text with a placeholder that has no value: "Wait  s." says less than the default. */
function fill(template: string, values: Values, escaped = (text: string) => text) {
  let isComplete = true
  const text = template.replace(PLACEHOLDER, (_, name) => {
    isComplete &&= values[name] !== undefined
    return escaped(String(values[name]))
  })
  return isComplete ? text : undefined
}

function filled(kind: BodyKind, template: unknown, values: Values): string | undefined {
  if (kind === 'html') return fill(template as string, values, escapeHtml)
  if (kind === 'text') return fill(template as string, values)
  return JSON.stringify(template, (_, text) => {
    if (typeof text !== 'string') return text
    const [match] = text.matchAll(PLACEHOLDER)
    return (match?.[0] === text ? values[match[1]!] : fill(text, values)) ?? null
  })
}

export const compile: Feature['compile'] = ({ config }) =>
  [config, ...config.policies].some(({ refusal }) => typeof refusal === 'object') || config.live
    ? { refuse: write }
    : {}
