/** The sentences of `sluice verify`. */
import type { VerifiedPolicy } from '../../src/features/verify/verified.ts'
import type { Answer, SampleRequest } from './client.ts'
import { type Finding, problem, unknown } from './finding.ts'

export const countText = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`

/** `1st`, `2nd`, `11th`. */
export function ordinal(count: number): string {
  const ends = ['th', 'st', 'nd', 'rd']
  const last = count % 10
  const isTeen = Math.floor(count / 10) % 10 === 1
  return `${count}${(isTeen ? undefined : ends[last]) ?? 'th'}`
}

/** Why a request has an answer, but no decision of Sluice. */
export function whyUncovered(
  { status, headers, isCached, body }: Answer,
  { method, path }: SampleRequest,
  routes: string[],
): string {
  const sent = `${method} ${path}`
  const cache =
    isCached ||
    /hit/i.test(headers.get('cf-cache-status') ?? headers.get('x-cache') ?? '') ||
    Number(headers.get('age')) > 0
  if (cache) {
    return `a cache in front of Sluice answers ${sent} with ${status}: put the cache behind Sluice, or exempt the path from it`
  }
  if (status >= 500) {
    return `${sent} answers ${status}${detailIn(body)}`
  }
  const by = headers.get('x-powered-by') ?? ''
  const remedy = /next\.js/i.test(by)
    ? 'Next.js does not run the limiter: the file must be proxy.ts (middleware.ts before Next.js 16) beside the folder app, and its matcher must include the path'
    : /express/i.test(by)
      ? 'the app answers before the limiter: write app.use(rateLimiter(…)) above the routes'
      : routes.length > 0
        ? `the routes of the Worker are ${routes.join(', ')}`
        : 'the route of the Worker or the mount of the limiter does not cover the path'
  return `not limited: ${sent} answers ${status} without Sluice. ${upper(remedy)}`
}

const upper = (text: string) =>
  /^[a-z]/.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text

/** The detail of a problem document. */
export function detailIn(body: string): string {
  try {
    const { title, detail } = JSON.parse(body)
    const text = detail ?? title
    return typeof text === 'string' ? `: ${text}` : ''
  } catch {
    return ''
  }
}

/** Fields of a condition that a request cannot choose. */
const BY_CLIENT = ['country', 'asn', 'ip', 'ja4', 'botScore', 'verifiedBot', 'not']

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
