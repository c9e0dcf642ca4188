import * as v from 'valibot'
import type { Soon } from '../../core/base/when-known.ts'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import type { BodyPart } from '../../core/config/schema/key.ts'
import { duration, type Input, type Named, object } from '../../core/config/schema/shapes.ts'
import type { Feature } from '../../core/feature.ts'
import type { Met, Unmet } from '../../core/program/match.ts'
import type { PartSource } from '../../core/program/source.ts'
import { folded } from '../../core/request/fold.ts'
import { queryValues } from '../../core/request/values.ts'
import { oncePerRequest, type RequestView } from '../../core/request/view.ts'
import { checkBodies } from './check.ts'
import { describeEach, type Messages } from './each.ts'
import { errorBody } from './error-body.ts'
import { UNREADABLE } from './json.ts'
import { type GraphqlCost, messageOf } from './message.ts'
import { meterBody } from './meter.ts'
import { readBody } from './read.ts'

export type { GraphqlCost } from './message.ts'

const KIB = 1024
const MOST = KIB * KIB

/** A size in bytes, or with a unit: `'64kb'`, `'1mb'`. */
export type Size = number | `${number}${'b' | 'kb' | 'mb'}`

function parseSize(input: unknown): number | undefined {
  const [, digits, unit = 'b'] = /^(\d{1,7})(b|kb|mb)?$/i.exec(String(input)) ?? []
  const bytes = Number(digits) * { b: 1, kb: KIB, mb: MOST }[unit.toLowerCase() as 'b']
  return bytes >= 1 && bytes <= MOST ? bytes : undefined
}

const size = v.pipe(
  v.custom<Size>(
    (input) => parseSize(input) !== undefined,
    'a size like "64kb" of at most "1mb", or bytes',
  ),
  v.transform((input) => parseSize(input)!),
)

const fields = () => ({
  /** Largest body that is read: a size such as `'64kb'`, or bytes; at most `'1mb'`. A larger body counts as unreadable. Defaults to `'64kb'`. */
  max: v.optional(size, 64 * KIB),
  /** Longest wait for a body that arrives slowly: at most `'60s'`. After it the body counts as unreadable. Defaults to `'5s'`. */
  timeout: v.optional(v.pipe(duration, v.maxValue(60_000, 'a duration of at most "60s"')), 5_000),
  /** The cost of GraphQL documents, for `cost: { graphql: true }`: the result of `graphqlCost()` from `sluice/graphql`. Defaults to none. */
  graphql: v.optional(
    v.custom<GraphqlCost>(
      (input) => typeof input === 'function',
      "the result of graphqlCost() from 'sluice/graphql'",
    ),
  ),
})

/** Options of `bodies`. */
export interface BodiesOptions extends Input<ReturnType<typeof fields>>, Named {}

/** Most messages of one body that are read. More are charged as unreadable ones. */
const MAX_MESSAGES = 100
/** Most keys of one request in addition to those of one quota for each policy. */
const MAX_MORE_KEYS = 64

const bodySource: PartSource = {
  compile:
    (part: BodyPart, { unreadable }) =>
    ({ message }) =>
      message?.read(part, unreadable),
  fold: (value, { digest }: BodyPart) => (digest ? value : folded(value)),
}

/**
 * Lets policies use the JSON body of a request (`body:<path>` in `key`, `match.body`, `cost.body`), and the usage in the body of a response
 * (`cost.usage`). The body of a request is read only if a policy whose other conditions match needs it. The app or the origin receives the
 * same bytes.
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * defineConfig({
 *   policies: [{ name: 'tools', limit: 20, window: '1m', match: { body: { method: 'tools/call' } }, key: ['ip', 'body:params.name'] }],
 *   use: [bodies()],
 * })
 */
export function bodies(options: BodiesOptions = {}): Feature {
  const { graphql, max, timeout } = parsedOptions(object(fields), options, 'bodies')
  const message = (value: unknown, view: RequestView) => {
    const urlQuery = (name: string) => queryValues(view, name).filter((one) => one !== undefined)
    return messageOf(value, graphql, view.omitted?.includes('query') ? undefined : urlQuery)
  }

  const contentOf = oncePerRequest(({ request }: Pick<RequestView, 'request'>) =>
    readBody(request, { maxBytes: max, timeoutMs: timeout }),
  )

  type Asked = { request: Request; view: RequestView; freeKeys: number }
  const messagesOf = oncePerRequest(async ({ view, freeKeys }: Asked): Promise<Messages> => {
    const room = { keys: Math.min(MAX_MORE_KEYS, freeKeys) }
    const content = await contentOf(view)
    const value = content && ('value' in content ? content.value : UNREADABLE)
    if (!Array.isArray(value) || value.length === 0) {
      const { items = 1 } = (content ?? {}) as { items?: number }
      return { list: [message(value, view)], count: items, room }
    }
    const list = value.length > MAX_MESSAGES ? [UNREADABLE] : value
    return { list: list.map((one) => message(one, view)), count: value.length, room }
  })

  async function refine(
    views: RequestView[],
    describe: (views: RequestView[]) => Soon<Met | Unmet>,
    freeKeys: number,
  ): Promise<Met | Unmet> {
    const view = views[0]!
    const messages = await messagesOf({ request: view.request, view, freeKeys })
    return describeEach(views, messages, describe, message(UNREADABLE, view))
  }
  return {
    name: 'bodies',
    readsBodies: true,
    check: (config, problem) => checkBodies(config, graphql !== undefined, problem),
    compile: () => ({
      sources: { body: bodySource },
      refine,
      async bodyProblem(request) {
        const content = await contentOf({ request })
        return content && 'unreadable' in content ? content.unreadable : undefined
      },
      async errorBody(format, request, problem) {
        const content = await contentOf({ request })
        return errorBody(format, content, problem, request.headers.get('accept') ?? '')
      },
      meter: meterBody,
    }),
  }
}
