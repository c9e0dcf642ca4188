/** The sentences of `sluice verify`. */
import type { VerifiedPolicy } from '../../src/features/verify/verified.ts'
import { type Answer, isLimited, type SampleRequest } from './client.ts'
import { type Finding, problem, unknown } from './finding.ts'
import type { PolicyContext } from './policy-context.ts'

export const countText = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`

export const listed = (all: string[]): string =>
  all.length === 1 ? all[0]! : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`

/** `1st`, `2nd`, `11th`. */
export function ordinal(count: number): string {
  const ends = ['th', 'st', 'nd', 'rd']
  const last = count % 10
  const isTeen = Math.floor(count / 10) % 10 === 1
  return `${count}${(isTeen ? undefined : ends[last]) ?? 'th'}`
}

/**
 * What it means that a request has an answer, but no decision of Sluice.
 * @param name that of the finding
 */
export function uncovered(
  name: string,
  { status, headers, isCached, body }: Answer,
  { method, path }: SampleRequest,
  { routes, poweredBy }: Pick<PolicyContext, 'routes' | 'poweredBy'>,
): Finding {
  const sent = `${method} ${path}`
  if (headers.get('cf-mitigated') === 'challenge') {
    return unknown(
      name,
      `not checked: Cloudflare challenges ${sent} before Sluice. Exempt this machine from the rule`,
    )
  }
  const cache =
    isCached ||
    /hit/i.test(headers.get('cf-cache-status') ?? headers.get('x-cache') ?? '') ||
    Number(headers.get('age')) > 0
  if (cache) {
    return problem(
      name,
      `a cache in front of Sluice answers ${sent} with ${status}: put the cache behind Sluice, or exempt the path from it`,
    )
  }
  if (isLimited({ headers })) {
    return problem(
      name,
      `${sent} is limited as that of any client: Sluice does not recognize this command. Set SLUICE_VERIFY_TOKEN of the deployment to the same token, write use: [verify()] in an app, and let no proxy remove Sluice-Verify or Sluice-Verified`,
    )
  }
  if (status >= 500) return problem(name, `${sent} answers ${status}${detailIn(body)}`)
  const target = headers.get('location')
  if (target !== null && status >= 300 && status < 400) {
    return problem(
      name,
      `not limited: ${sent} is redirected (${status}) to ${target} without Sluice. Put the limiter before the redirect, or run sluice verify with the address behind it`,
    )
  }
  // An app sends the field with some of its answers only.
  const by = headers.get('x-powered-by') ?? poweredBy
  const remedy = /next\.js/i.test(by)
    ? 'Next.js does not run the limiter: the file must be proxy.ts (or middleware.ts, the only name before Next.js 16) beside the folder app, and its matcher must include the path'
    : /express/i.test(by)
      ? 'the app answers before the limiter: write app.use(rateLimiter(…)) above the routes'
      : routes.length > 0
        ? `the routes of the Worker are ${routes.join(', ')}`
        : 'the route of the Worker or the mount of the limiter does not cover the path'
  const refused = [401, 403, 407, 429].includes(status)
    ? `. If a server in front refuses the request, let it pass: --header 'Authorization: …'`
    : ''
  return problem(
    name,
    `not limited: ${sent} answers ${status} without Sluice. ${upper(remedy)}${refused}`,
  )
}

const upper = (text: string) =>
  /^[a-z]/.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text

/** The most characters of a server's own words. */
const MAX_DETAIL = 300

/** The detail of a problem document. */
export function detailIn(body: string): string {
  try {
    const { title, detail } = JSON.parse(body)
    const text = detail ?? title
    return typeof text === 'string' ? `: ${text.slice(0, MAX_DETAIL)}` : ''
  } catch {
    return ''
  }
}

/** Fields of a condition that a request cannot choose. */
const BY_CLIENT = [
  ...['country', 'asn', 'ip', 'ja4', 'botScore', 'verifiedBot', 'jwt', 'apiKey', 'not'],
]

/**
 * Why a policy does not apply to the request that was made for it.
 * @param isExpected true if the configuration of this folder applies it to the request as it was sent
 */
export function whyUnmet(
  policy: string,
  { unmet, name = '' }: Extract<VerifiedPolicy, { applies: false }>,
  isExpected: boolean,
  { method, path, headers }: SampleRequest,
): Finding {
  switch (unmet) {
    case 'allow':
      return problem(
        policy,
        `not limited: the entry ${name} of allow exempts this client. Narrow the entry, or run sluice verify from another network`,
      )
    case 'deny':
      return unknown(policy, `not checked: ${name} denies the request`)
    case 'unknown':
      return problem(policy, 'not deployed: the deployment has no policy of this name')
    case 'key': {
      const [source = '', field = ''] = name.split(/:(.*)/s)
      const wasSent =
        (source === 'header' && headers[field] !== undefined) ||
        (source === 'cookie' && headers.cookie?.includes(`${field}=`)) ||
        (source === 'api-key' && Object.keys(headers).length > 0)
      if (isExpected && wasSent) {
        return problem(
          policy,
          `not limited: the request was sent with ${name}, and arrives without it. A proxy in front of Sluice removes the field`,
        )
      }
      return unknown(policy, `not checked: the request has no usable ${name}. Add it with --header`)
    }
    default: {
      if (BY_CLIENT.includes(name) || !isExpected) {
        return unknown(policy, `not checked: no request from here matches its field ${name}`)
      }
      return problem(
        policy,
        `not limited: ${method} ${path} matches the policy in this folder, but not where it arrives (${name}). A proxy in front changes the request, or the deployed policy is another one`,
      )
    }
  }
}
