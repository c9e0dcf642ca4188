/** Policies by the JSON body of a request, and costs in the body of a response. */
import type { Soon } from '../../core/base/when-known.ts'
import type { Feature } from '../../core/feature.ts'
import type { Met, Unmet } from '../../core/program/match.ts'
import { oncePerRequest } from '../../core/request/memo.ts'
import { queryValues } from '../../core/request/values.ts'
import type { RequestView } from '../../core/request/view.ts'
import { checkBodies } from './check.ts'
import { describeEach, type Messages } from './each.ts'
import { errorBody } from './error-body.ts'
import { UNREADABLE } from './json.ts'
import { messageOf } from './message.ts'
import { meterBody } from './meter.ts'
import { type BodiesOptions, parseOptions } from './options.ts'
import { readBody } from './read.ts'
import { bodySource } from './source.ts'

export type { GraphqlCost } from './message.ts'
export type { BodiesOptions } from './options.ts'

/** Most messages of one body that are read. More are charged as unreadable ones. */
const MAX_MESSAGES = 100

/** Most keys of one request in addition to those of one quota for each policy. */
const MAX_MORE_KEYS = 64

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
  const { graphql, max: maxBytes, maxResponse, timeout: timeoutMs } = parseOptions(options)
  const message = (value: unknown, view: RequestView) =>
    messageOf(
      value,
      graphql,
      view.omitted?.includes('query')
        ? undefined
        : (name) => queryValues(view, name).filter((one) => one !== undefined),
    )

  const contentOf = oncePerRequest(({ request }: Pick<RequestView, 'request'>) =>
    readBody(request, { maxBytes, timeoutMs }),
  )

  interface Asked extends Pick<RequestView, 'request'> {
    view: RequestView
    freeKeys: number
  }
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
  async function bodyProblem(request: Request): Promise<string | undefined> {
    const content = await contentOf({ request })
    return content && 'unreadable' in content ? content.unreadable : undefined
  }

  return {
    name: 'bodies',
    readsBodies: true,
    check: (config, problem) => checkBodies(config, graphql !== undefined, problem),
    compile: () => ({
      sources: { body: bodySource },
      refine,
      bodyProblem,
      errorBody: async (format, request, problem) =>
        errorBody(
          format,
          await contentOf({ request }),
          problem,
          request.headers.get('accept') ?? '',
        ),
      meter: (answer, metering) => meterBody(answer, metering, maxResponse),
    }),
  }
}
