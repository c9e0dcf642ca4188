/** Shows one request of the timeline: its decision, and what the client reads. */
import { byId, setText, showPairs } from '../../cli/dashboard/page/dom.ts'
import { durationText, numberText } from '../../cli/dashboard/page/text.ts'
import { ask } from './ask.ts'
import type { Played } from './engine/answer.ts'

/** Names of fields as they are usually written. */
const shownName = (name: string) =>
  name === 'ratelimit' || name === 'ratelimit-policy'
    ? name.replace('ratelimit', 'RateLimit').replace('policy', 'Policy')
    : name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())

export function showRequest({ served, from }: Played, index: number, text: string) {
  const one = served[index]
  if (!one) return
  const { arrival, decision, status, fields, body } = one
  const waitedMs = one.at - arrival.at
  const title = byId('request-title')
  const at = arrival.at === from ? '0 s' : durationText(arrival.at - from)
  setText(
    title,
    `Request ${index + 1} of ${served.length}, at ${at}: ${decision.allowed ? 'admitted' : 'refused'} (${decision.reason})`,
  )
  title.classList.toggle('was-refused', !decision.allowed)
  showPairs(byId('request'), {
    client: arrival.ip,
    ...(waitedMs > 0 && { waited: durationText(waitedMs) }),
    ...Object.fromEntries(
      decision.limits.map(({ policy, remaining, limit, allowed, retryAfterMs, bannedForMs }) => [
        policy,
        allowed
          ? `${numberText(remaining)} of ${numberText(limit)} left`
          : bannedForMs
            ? `banned for ${durationText(bannedForMs)}`
            : `refuses, wait ${durationText(retryAfterMs)}`,
      ]),
    ),
  })
  const lines = [
    `HTTP/1.1 ${status}`,
    ...fields.map(([name, value]) => `${shownName(name)}: ${value}`),
    ...(body ? ['', body] : []),
  ]
  setText(byId('fields'), lines.join('\n'))
  showWhy(index, text, one.arrival)
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
