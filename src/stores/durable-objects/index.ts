/** `sluice/durable-objects`: counts in Durable Objects of Cloudflare, without a database. */
import * as v from 'valibot'
import type { OwnStore, StoreClient } from '../../core/base/commands.ts'
import { ConfigError } from '../../core/base/errors.ts'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import { type Input, object, oneOf, pattern } from '../../core/config/schema/shapes.ts'
import type { Store } from '../../core/connection/store.ts'
import { createObjectStore, spreadBySubject } from './objects.ts'
import type { ObjectNamespace } from './runtime.ts'

export type { StoreClient } from '../../core/base/commands.ts'
export { SluiceSubject } from './subject.ts'

const fields = () => ({
  /** The name of the binding in the wrangler configuration. Defaults to `SLUICE_SUBJECT`. */
  binding: v.optional(
    pattern('the name of a binding, like "SLUICE_SUBJECT"', /^[A-Za-z_]\w{0,63}$/),
    'SLUICE_SUBJECT',
  ),
  /** Where new objects run, if possible: a region of Cloudflare. Defaults to near the first request for a subject. */
  locationHint: v.optional(oneOf('wnam', 'enam', 'sam', 'weur', 'eeur', 'apac', 'oc', 'afr', 'me')),
  /** Where objects run and store data, always. Another jurisdiction has other objects: a change resets all quotas. Defaults to none. */
  jurisdiction: v.optional(oneOf('eu', 'us', 'fedramp', 'fedramp-high')),
})

export interface DurableObjectsOptions extends Input<ReturnType<typeof fields>> {}

const schema = object(fields)

/**
 * Makes the field `store` of a configuration: each subject is counted by a Durable Object of its own, in its SQLite database. The Worker
 * exports the class `SluiceSubject` and binds it. Only on Cloudflare Workers.
 * @throws {ConfigError} immediately, if an option is invalid
 * @example
 * defineConfig({
 *   store: durableObjects(),
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export function durableObjects(options: DurableObjectsOptions = {}): StoreClient {
  const { binding, locationHint, jurisdiction } = parsedOptions(schema, options, 'durableObjects')
  const bound = (env: object) => (env as Record<string, ObjectNamespace | undefined>)[binding]
  const own: OwnStore<Store> = {
    binding,
    batching: false,
    check({ use = [], clock, live, policies = [] }, problem) {
      const index = use.findIndex(({ name }) => name === 'cluster')
      if (index >= 0) {
        problem(['use', index], 'no cluster() with durableObjects(), which have no database')
      }
      if (clock === 'edge') problem(['clock'], '"store" with durableObjects(), whose clock is free')
      policies.forEach((policy, index) => {
        if (Object(Object(policy).penalty).list)
          problem(['policies', index, 'penalty', 'list'], 'no value: Durable Objects have no list')
      })
      if (live?.from === 'redis') problem(['live', 'from'], '"kv:<binding>" with durableObjects()')
    },
    problems(env) {
      const detail = `Bind the class SluiceSubject as ${binding} in the configuration of wrangler.`
      return bound(env) ? [] : [{ code: 'not-configured', detail }]
    },
    create(env, { namespace, batching }) {
      const given = bound(env)
      const objects = jurisdiction ? given?.jurisdiction(jurisdiction) : given
      return createObjectStore({ objects, binding, namespace, locationHint, batching })
    },
    spread: spreadBySubject,
  }
  return {
    own: own as OwnStore,
    connect() {
      const expected = 'upstash(…): Durable Objects have no commands'
      throw new ConfigError([{ path: 'store', expected, got: 'durableObjects()' }])
    },
  }
}
