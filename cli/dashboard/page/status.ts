/** The verdict on top of the page: does the store decide, and if not, what happens to clients and what is there to do. */
import type { Health } from '../../../src/core/connection/breaker.ts'
import type { Stats } from '../../../src/features/observe/report.ts'
import { byId, element, setText } from './dom.ts'
import { quantile } from './figures.ts'
import type { ListedPolicy } from './policies.ts'
import { ageText, boundText, numberText, shareText, timeText } from './text.ts'

export interface Status {
  level: 'good' | 'warning' | 'bad'
  title: string
  text: string
  /** What to do. */
  steps: string[]
}

const CHECK_OUTBOUND =
  'If the database is up, check that the Worker can reach the URL in UPSTASH_REDIS_REST_URL.'

/** Why calls fail, and what to do first. */
const failures: Partial<Record<NonNullable<Health['failure']>, [why: string, step: string]>> = {
  timeout: [
    'the store does not answer in time',
    'Look at the load and the latency of the database in its console. A longer deadline in the configuration waits for a slow one.',
  ],
  unreachable: [
    'the connection to the store fails',
    `Look in the console of the database whether it is up. ${CHECK_OUTBOUND}`,
  ],
  unauthorized: [
    'the store refuses the token or the password',
    'Set UPSTASH_REDIS_REST_TOKEN to the token of the database, or REDIS_URL with its password. It may have been rotated. Then deploy.',
  ],
  'over-quota': [
    'the database is over its quota or budget',
    'Raise the budget or the plan of the database in its console.',
  ],
  'database-full': [
    'the database is full',
    'Raise its size, or delete what does not belong to Sluice.',
  ],
  'bad-reply': [
    'the answers are not those of the Upstash REST API',
    'Compare UPSTASH_REDIS_REST_URL with the REST URL in the console of the database.',
  ],
}

/** What happens to requests while the store does not decide, the most urgent first. */
const effects = {
  deny: ['all requests are refused with 503', 'Refusing'],
  allow: ['nothing is limited', 'Not limiting'],
  local: [
    'each isolate counts by itself, so a client gets its limit once in each',
    'Counting locally',
  ],
} as const

/** Lists of names stay short. */
const named = (names: string[]) =>
  names.length > 3
    ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`
    : names.join(', ')

export function statusOf(stats: Stats, policies: ListedPolicy[]): Status {
  const { now, openSince, failure = 'internal', answeredAt, lastMinute, total } = stats
  const { fallbacks, decisions } = lastMinute
  const part = `${numberText(fallbacks)} of ${numberText(decisions)} requests of the last minute (${shareText(fallbacks, decisions)}) were decided without the store.`
  const answered =
    answeredAt === undefined
      ? 'The store has not answered since the start of the isolate.'
      : `The last answer in time came ${ageText(now - answeredAt)} ago.`
  if (openSince !== undefined) {
    const [why, step] = failures[failure] ?? [
      `calls to the store fail (${failure})`,
      'Search the log of the Worker for store-error.',
    ]
    const enforced = policies.filter(({ mode }) => mode === 'enforce')
    const groups = (['deny', 'allow', 'local'] as const).flatMap((by) => {
      const names = enforced
        .filter(({ onStoreError }) => onStoreError === by)
        .map(({ name }) => name)
      return names.length > 0 ? [{ by, names }] : []
    })
    const worst = groups[0]?.by ?? 'local'
    const what = groups.map(({ by, names }) => `${named(names)}: ${effects[by][0]}.`)
    return {
      level: worst === 'local' ? 'warning' : 'bad',
      title: `${effects[worst][1]} since ${timeText(openSince)}, because ${why}`,
      text: [...what, part, answered].join(' '),
      steps: [
        step,
        'The circuit closes by itself with the first answer in time: one request each second tries.',
        'onStoreError of a policy chooses what happens meanwhile: local, deny or allow. The guide "Survive a Redis outage" compares them.',
      ],
    }
  }
  if (fallbacks > 0) {
    return {
      level: 'warning',
      title: 'The store answers, but not always in time',
      text: `${part} ${answered}`,
      steps: [
        'Compare the p99 of the latency below with the deadline of the configuration, 300 ms by default.',
        'Choose a region of the database near the Worker.',
      ],
    }
  }
  const { latency } = total.store
  const median = boundText(quantile(latency, 0.5), latency.bounds)
  return {
    level: 'good',
    title:
      answeredAt === undefined ? 'Ready. No call to the store yet' : 'Healthy: the store decides',
    text:
      answeredAt === undefined
        ? ''
        : `${answered} Median ${median}. No fallback in the last minute.`,
    steps: [],
  }
}

export function showStatus(stats: Stats, policies: ListedPolicy[]) {
  const { level, title, text, steps } = statusOf(stats, policies)
  const place = byId('status')
  place.hidden = false
  place.dataset.level = level
  setText(byId('status-title'), title)
  setText(byId('status-text'), text)
  byId('status-help').hidden = steps.length === 0
  const list = byId('status-steps')
  if (list.textContent !== steps.join('')) {
    list.replaceChildren(...steps.map((step) => element('li', step)))
  }
}
