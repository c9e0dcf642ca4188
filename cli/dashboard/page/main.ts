/** The page of the dashboard: reads the counts of the Worker every 2 s. */
import type { Stats } from '../../../src/features/observe/report.ts'
import type { About } from '../about.ts'
import { type History, ranges } from '../ranges.ts'
import { about, CallError, call, historyOf, messageIn, openSession } from './call.ts'
import { showChart } from './chart.ts'
import { CHANGED, showPolicyChoice } from './client.ts'
import { byId, element, scrollByKeys, setText, showPairs, showRows } from './dom.ts'
import { onExplain } from './explain.ts'
import {
  byOutcome,
  byPolicy,
  decisionsIn,
  ofClients,
  quantile,
  rates,
  refusedIn,
  timeline,
} from './figures.ts'
import { readLists, showLists } from './lists.ts'
import { type ListedPolicy, showPolicies } from './policies.ts'
import { showRefusals } from './refusals.ts'
import { showStatus } from './status.ts'
import {
  boundText,
  compactText,
  dollarText,
  numberText,
  policyText,
  rateText,
  shareText,
  timeText,
} from './text.ts'
import { onView, showPolicyFilter, showRanges, view } from './view.ts'

const POLL_MS = 2000
/** Each call of `/policies` makes one call to every database, and so does each list of limits of operators and of bans. */
const POLICIES_MS = 60_000
const HISTORY_MS = 15_000

const OBSERVE_OFF = `The Worker does not count its decisions. Add to sluice.config.ts, and deploy it:

import { observe } from 'sluice/features'

use: [observe()],`
const NO_API =
  'The Worker has no decision API at this address. Check --url, and that the Worker has the variable SLUICE_OPERATE_TOKEN, of at least 16 characters.'
const NO_BILL =
  'The projection needs one minute of counts and 100 requests, so that the calls of this page and of operators do not pass for those of clients.'

let policies: ListedPolicy[] = []
let policiesAt = Number.NEGATIVE_INFINITY
/** The counts of one isolate, or of all. */
type Shown = Stats & { isOfAll?: true }

let stats: Shown | undefined
let past: { range: string; at: number; history: History } | undefined

function show() {
  if (!stats) return
  const { total, now, isOfAll } = stats
  const whose = isOfAll ? 'all isolates (Analytics Engine)' : 'one isolate of the Worker'
  setText(
    byId('source'),
    `Counts of ${whose} since ${timeText(total.from)}, as of ${timeText(now)}`,
  )
  showStatus(stats, policies)
  const isEmpty = decisionsIn(byOutcome(total.series)) === 0
  byId('first').hidden = !isEmpty
  byId('counts').hidden = isEmpty
  showBill(stats)
  if (isEmpty) return
  showFigures(stats)
  showRefusals(stats, policies)
  showRange(stats)
}

function showFigures(now: Stats) {
  const { latency } = now.total.store
  const { requests, refused, dollarsAMonth } = rates(now)
  showPairs(byId('figures'), {
    'requests, last minute': compactText(Math.round(requests)),
    'refused, last minute': `${compactText(Math.round(refused))} (${shareText(refused, requests)})`,
    'store, p99': boundText(quantile(latency, 0.99), latency.bounds),
    'a month costs': rateText(dollarsAMonth, '', dollarText).trim(),
  })
}

function showBill(now: Stats) {
  const { total, fallbacks, circuit, dropped } = now
  const { latency, errors, calls, billedCommands, operators } = total.store
  const all = byOutcome(total.series)
  const rate = rates(now)
  const { commands, dollarsAMonth } = rate
  setText(
    byId('bill'),
    dollarsAMonth === undefined
      ? commands === 0
        ? 'The store bills no commands.'
        : NO_BILL
      : `${dollarText(dollarsAMonth)} a month = ${numberText(rate.requests / 60)} requests a second × ${numberText(commands!)} billed commands × 30 days × $0.20 per 100,000 commands, the price of Upstash without a plan.`,
  )
  const counted = (title: string, counts: Record<string, number>) =>
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => [`${title} ${name}`, numberText(count)])
  showPairs(byId('store'), {
    circuit: circuit === 'open' ? 'open: no calls' : 'closed: calls pass',
    'requests since the start': numberText(decisionsIn(all)),
    'refused since the start': `${numberText(refusedIn(all))} (${shareText(refusedIn(all), decisionsIn(all))})`,
    'decided without the store': numberText(fallbacks),
    'median latency': boundText(quantile(latency, 0.5), latency.bounds),
    'p99 latency': boundText(quantile(latency, 0.99), latency.bounds),
    'HTTP calls': `${numberText(calls - (operators?.calls ?? 0))}`,
    'HTTP calls a request': rateText(rate.calls, '').trim(),
    'billed commands': numberText(billedCommands - (operators?.billedCommands ?? 0)),
    'billed commands a request': rateText(commands, '').trim(),
    ...(operators && {
      'operators and this page': `${numberText(operators.calls)} calls, ${numberText(operators.billedCommands)} commands`,
    }),
    ...Object.fromEntries([...counted('errors:', errors), ...counted('lost reports:', dropped)]),
  })
}

/** Shows the counts of the range: the chart and the table. */
function showRange(now: Shown) {
  const { range, policy } = view
  const history = range !== 'minutes' && past?.range === range ? past.history : undefined
  const note = byId('history-note')
  note.hidden = !history?.isolates
  setText(
    note,
    `Since ${timeText(history?.since ?? 0)}: this command keeps what it has seen${history?.isolates === 1 ? '' : `, of ${history?.isolates} isolates`}.`,
  )
  const slots = history?.slots ?? now.slots
  const { times, counts } = timeline({ now: now.now, slots }, range, policy)
  const { series } = timeline({ now: now.now, slots }, range)
  const rows = byPolicy(series)
  showPolicyFilter([
    ...new Set([
      ...rows.map((row) => row.policy),
      ...byPolicy(now.total.series).map((row) => row.policy),
    ]),
  ])
  showChart(times, counts, range)
  const sum = { policy: 'all policies', counts: byOutcome(series) }
  const shown = rows.filter((row) => policy === undefined || row.policy === policy)
  showRows(byId('requests'), shown.length > 1 ? [...shown, sum] : shown, {
    key: (row) => (row === sum ? 'sum' : `policy ${row.policy}`),
    cells: ({ policy, counts }) => [
      policyText(policy),
      numberText(decisionsIn(counts)),
      ...ofClients.map((outcome) => numberText(counts[outcome])),
      shareText(refusedIn(counts), decisionsIn(counts)),
    ],
  })
  setText(byId('requests-title'), `Requests, last ${ranges[range].label}`)
}

function showAbout({ worker, findings, keepsWeek }: About) {
  setText(byId('worker'), worker)
  setText(byId('first-command'), `curl -i ${worker}/`)
  showRanges(keepsWeek ?? false)
  const title = byId('findings-title')
  title.hidden = !findings
  if (!findings) return
  const { file, list } = findings
  setText(title, list.length > 0 ? `Findings in ${file}` : `The linter has no findings in ${file}.`)
  byId('findings').replaceChildren(
    ...list.map(({ code, path, message, hint }) => {
      const item = element('li')
      item.append(element('code', code), ` ${path}: ${message} ${hint}`)
      return item
    }),
  )
}

async function readPolicies() {
  if (performance.now() - policiesAt < POLICIES_MS) return
  showAbout(await about())
  policies = (await call<{ policies: ListedPolicy[] }>('policies')).policies
  policiesAt = performance.now()
  showPolicies(policies)
  showPolicyChoice(policies)
  // The store may not answer, which the status says.
  await readLists(policies).catch(() => {})
}

async function readHistory() {
  const { range } = view
  if (range === 'minutes') return
  if (past?.range === range && performance.now() - past.at < HISTORY_MS) return
  const history = await historyOf(range)
  past = { range, at: performance.now(), history }
}

/** Reads everything once. Returns what is wrong, and the wait until the next attempt in ms. */
async function refresh(): Promise<{ problem: string; waitMs: number }> {
  try {
    await readPolicies()
  } catch (error) {
    return failed(error, NO_API)
  }
  try {
    stats = await call<Shown>('stats')
    await readHistory()
    show()
  } catch (error) {
    return failed(error, OBSERVE_OFF)
  }
  return { problem: '', waitMs: POLL_MS }
}

function failed(error: unknown, ifMissing: string) {
  if (!(error instanceof CallError)) return { problem: messageIn(error), waitMs: POLL_MS }
  const problem = error.status === 404 ? ifMissing : error.message
  return { problem, waitMs: Math.max(POLL_MS, error.retryAfter * 1000) }
}

async function poll() {
  const { problem, waitMs } =
    document.hidden || !view.isLive ? { problem: undefined, waitMs: POLL_MS } : await refresh()
  if (problem !== undefined) {
    setText(byId('problem'), problem)
    document.body.classList.toggle('stale', problem !== '')
  }
  setTimeout(poll, waitMs)
}

// A mistake of the page itself must not leave it blank.
const fail = (error: unknown) =>
  setText(byId('problem'), `The page has failed: ${messageIn(error)}. Reload it.`)
addEventListener('error', ({ error }) => {
  if (error) fail(error) // a message without one is a warning, such as that of a ResizeObserver
})
addEventListener('unhandledrejection', ({ reason }) => fail(reason))

scrollByKeys()
onView(async (isOtherRange) => {
  if (isOtherRange) await readHistory()
  show()
  showLists()
})
byId('first-copy').addEventListener('click', async () => {
  await navigator.clipboard.writeText(byId('first-command').textContent ?? '')
  setText(byId('first-copy'), 'Copied')
})
onExplain(() => policies)
// The next reading reports an error.
document.addEventListener(CHANGED, () => readLists(policies).catch(() => {}))
addEventListener('hashchange', () => openSession().then(refresh)) // an address of a later start
openSession().then(poll)
