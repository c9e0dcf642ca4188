/** Shows one request of the timeline: its decision, and what the client reads. */
import { byId, setText, showPairs } from '../../cli/dashboard/page/dom.ts'
import { numberText } from '../../cli/dashboard/page/text.ts'
import type { LimitState } from '../../src/core/base/decision.ts'
import { ask } from './ask.ts'
import type { Played } from './engine/answer.ts'
import { momentText, waitText } from './engine/times.ts'

/** Names of fields as they are usually written. */
const shownName = (name: string) =>
  name === 'ratelimit' || name === 'ratelimit-policy'
    ? name.replace('ratelimit', 'RateLimit').replace('policy', 'Policy')
    : name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())

export function showRequest({ served, start, isCall }: Played, index: number, text: string) {
  const one = served[index]
  if (!one) return
  const { arrival, decision, status, fields, body, called } = one
  const waitedMs = one.at - arrival.at
  const title = byId('request-title')
  setText(
    title,
    `Request ${index + 1} of ${served.length}, at ${momentText(arrival.at - start)}: ${decision.allowed ? 'admitted' : 'refused'} (${decision.reason})`,
  )
  title.classList.toggle('was-refused', !decision.allowed)
  showPairs(byId('request'), {
    client: arrival.ip,
    ...(waitedMs > 0 && { waited: waitText(waitedMs) }),
    ...Object.fromEntries(decision.limits.map((state) => [state.policy, stateText(state)])),
  })
  const lines = [
    `HTTP/1.1 ${status}`,
    ...fields.map(([name, value]) => `${shownName(name)}: ${value}`),
    ...(body ? ['', body] : []),
  ]
  setText(byId('fields-title'), isCall ? 'What the call returns' : 'What the client reads')
  setText(byId('fields'), called ?? lines.join('\n'))
  byId('explain').hidden = isCall
  showWhy(index, text, one.arrival)
}

function stateText(state: LimitState): string {
  const { remaining, limit, allowed, retryAfterMs, bannedForMs, unit } = state
  if (allowed) return `${numberText(remaining)} of ${numberText(limit)} left`
  if (bannedForMs) return `banned for ${waitText(bannedForMs)}`
  // A slot is free as soon as a response ends: its time is not known.
  if (unit === 'concurrent-requests') return `refuses: ${numberText(limit)} are in flight`
  return retryAfterMs === null
    ? 'refuses: it never fits'
    : `refuses, wait ${waitText(retryAfterMs)}`
}

let wanted = -1

/** The explanation is asked for when it is open: each needs a parse of the configuration. */
async function showWhy(index: number, text: string, arrival: Played['served'][number]['arrival']) {
  wanted = index
  const place = byId('why')
  if (!place.closest('details')!.open) return
  const said = await ask({ kind: 'explain', text, arrival }).catch((error: Error) => error.message)
  if (wanted === index) setText(place, said)
}
