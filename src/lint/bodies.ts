/** Finds mistakes of policies that use the body of a request. */
import type { Policy } from '../core/config/parse.ts'
import type { ConfigRule, PolicyRule } from './facts.ts'

const refusesUnreadable = ({ key, distinct, onMissingKey }: Policy) =>
  onMissingKey === 'refuse' &&
  [...key, ...(distinct ? [distinct] : [])].some(({ source }) => source === 'body')

export const unreadableBody: PolicyRule = (policy, at) => {
  const { name, usesBody, cost, mode } = policy
  if (!usesBody || cost.max !== undefined || refusesUnreadable(policy) || mode === 'shadow')
    return []
  return {
    path: at,
    message: `"${name}" charges ${cost.otherwise} for a body that cannot be read, whatever it contains: a batch of too many calls costs as much as one.`,
    hint: "Set cost.max, such as cost: { max: 100 }. Or refuse such a body: onMissingKey: 'refuse', with a part body:… in key or distinct.",
  }
}

const WITHOUT_BODY = ['GET', 'HEAD']

export const neverABody: PolicyRule = ({ name, usesBody, match, cost }, at) => {
  if (!usesBody || cost.graphql) return [] // a GraphQL document may be in the URL
  if (!match.method?.every((method) => WITHOUT_BODY.includes(method))) return []
  return {
    path: `${at}.match.method`,
    message: `"${name}" uses the body, and applies to ${match.method.join(' and ')} only, which clients send without a body.`,
    hint: "Set match.method to 'POST', or leave it out.",
  }
}

export const bodyWithoutOrigin: ConfigRule = ({ config }) =>
  config.policies.flatMap(({ name, usesBody, accept }, index) => {
    if (!usesBody || accept.includes('body-without-origin')) return []
    return {
      path: `policies[${index}]`,
      message: `"${name}" uses the body, and the configuration has no origin: a gateway only serves its API, and forward-auth never has a body, so that each body counts as unreadable.`,
      hint: 'Send the body to the decision API, in request.body. Or set origin, so that requests pass through the Worker.',
    }
  })

const SMALL_CHUNK = 20

export const smallChunk: PolicyRule = ({ name, cost: { usage, cut, otherwise } }, at) => {
  if (!usage || !cut || otherwise >= SMALL_CHUNK) return []
  return {
    path: `${at}.cost.otherwise`,
    message: `"${name}" takes units for a stream in chunks of ${otherwise}: a call to Redis for every ${otherwise} events.`,
    hint: `Raise cost.otherwise to at least ${SMALL_CHUNK}. A stream may spend one chunk beyond the quota.`,
  }
}
