import * as v from 'valibot'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import {
  duration,
  type Input,
  list,
  type Named,
  named,
  object,
  oneOf,
  whole,
} from '../../core/config/schema/shapes.ts'
import type { DecisionEvent } from './event.ts'
import { isWebhookUrl } from './webhook.ts'

/** Where counts are sent. */
export type Destination = 'log' | 'trace' | `analytics:${string}` | `otlp:${string}`

const isDestination = (input: unknown): input is Destination => {
  if (typeof input !== 'string') return false
  const [, url] = /^otlp:(https?:\/\/[^\s@]+)$/.exec(input) ?? []
  return url ? URL.canParse(url) : /^(log|trace|analytics:[A-Za-z_]\w*)$/.test(input)
}

const webhookFields = () => ({
  /** Where notices are posted: an `https:` URL without credentials, or an `http:` URL on loopback. Required. */
  url: v.custom<string>(
    isWebhookUrl,
    'a URL like "https://hooks.example.com/limits" (https, or http on localhost)',
  ),
  /** The percentages of a quota at which a notice is sent, once for each subject and window. Defaults to `[80, 90, 100]`. */
  thresholds: v.optional(
    v.pipe(
      v.array(whole(1, 100, 'of percent from 1 to 100, such as 80'), 'a list of percentages'),
      v.minLength(1, 'at least one percentage'),
      v.maxLength(10, 'at most 10 percentages'),
    ),
    [80, 90, 100],
  ),
})
interface WebhookOptions extends Input<ReturnType<typeof webhookFields>>, Named {}

const fields = () => ({
  /**
   * How clients are named. `'hashed'`: the HMAC of the key, which is also the subject in Redis. `'plain'`: the values of the key, such as
   * `ip=203.0.113.7`. `'none'`: not at all, so that there are no offenders. Defaults to `'hashed'`.
   */
  subjects: v.optional(oneOf('hashed', 'none', 'plain'), 'hashed'),
  /**
   * Where counts are sent, one or a list: `'log'` for one line of JSON, `'analytics:BINDING'` for a dataset of the Workers Analytics
   * Engine, `'otlp:https://…/v1/metrics'` for an OpenTelemetry collector, `'trace'` for attributes of the active span of each request
   * (Workers tracing, OpenTelemetry). Defaults to none: `/_sluice/v1/stats` and `/_sluice/v1/metrics`
   * have the counts of one isolate.
   */
  to: v.optional(
    list(
      v.custom<Destination>(
        isDestination,
        '"log", "trace", "analytics:BINDING" or "otlp:https://collector.example.com/v1/metrics"',
      ),
      0,
    ),
    [],
  ),
  /** The minimum time between two reports of an isolate. There is no timer: a request sends the report. Defaults to `'10s'`. */
  every: v.optional(duration, 10_000),
  /** Posts a notice when a client has used a share of its quota: `{ url, thresholds }`. Defaults to none. */
  webhook: v.optional(named<WebhookOptions>()(object(webhookFields))),
  /**
   * Called with the event of each decision, and with the context that key functions get, such as Hono's; in the decision API that of the
   * call. It may return a promise, which the runtime keeps alive. An error is logged. Defaults to none.
   */
  onDecision: v.optional(
    v.custom<(event: DecisionEvent, context: unknown) => unknown>(
      (input) => typeof input === 'function',
      'a function',
    ),
  ),
})

/** The options of `observe()`. */
export interface ObserveOptions extends Input<ReturnType<typeof fields>> {}

const options = object(fields, ({ webhook, subjects }, problem) => {
  if (webhook && subjects === 'none') {
    problem(['webhook'], "no value (a notice names the client, but subjects is 'none')")
  }
})

export type ObserveSettings = v.InferOutput<typeof options>

/** The schema of a configuration that has only these options, so that the paths of problems begin with `observe`. */
const inConfig = object(() => ({ observe: options }))

/** @throws {ConfigError} lists every problem: path, expected, got */
export const parseOptions = (observe: unknown): ObserveSettings =>
  parsedOptions(inConfig, { observe }, 'observe').observe
