/** The page of the dashboard: reads the counts of the Worker every 2 s. */
import './language.ts'
import type { Stats } from '../../../src/features/observe/report.ts'
import type { About } from '../about.ts'
import { showBans } from './bans.ts'
import { about, CallError, call, messageIn, openSession } from './call.ts'
import { showChart } from './chart.ts'
import { byId, element, scrollByKeys, setText, showOptions, showPairs, showRows } from './dom.ts'
import { onExplain } from './explain.ts'
import {
  byOutcome,
  byPolicy,
  decisionsIn,
  ofClients,
  quantile,
  rates,
  refusedIn,
} from './figures.ts'
import { showOffenders } from './offenders.ts'
import { showOverrides } from './overrides.ts'
import { BANS_CHANGED, type ListedPolicy, showPolicyChoice } from './quotas.ts'
import {
  boundText,
  dollarText,
  durationText,
  numberText,
  policyText,
  rateText,
  shareText,
  timeText,
} from './text.ts'

const POLL_MS = 2000
/** Each call of `/policies` makes one call to every database, and so does each list of limits of operators and of bans. */
const POLICIES_MS = 60_000

const OBSERVE_OFF = `The Worker does not count its decisions. Add to sluice.config.ts, and deploy it:

import { observe } from 'sluice/features'

use: [observe()],`
const NO_API =
  'The Worker has no decision API at this address. Check --url, and that the Worker has the variable SLUICE_OPERATE_TOKEN, of at least 16 characters.'

const ALL = 'all policies'
const chartPolicy = byId<HTMLSelectElement>('chart-policy')
let policies: ListedPolicy[] = []
let policiesAt = Number.NEGATIVE_INFINITY
/** The counts of one isolate, or of all. */
type Shown = Stats & { isOfAll?: true }

let stats: Shown | undefined

function showStats(now: Shown) {
  stats = now
  const { total, isOfAll, fallbacks, circuit, dropped } = now
  const { latency, errors, calls, billedCommands, operators } = total.store
  const all = byOutcome(total.series)
  const rate = rates(now)
  byId('counts').hidden = false
  const whose = isOfAll ? 'all isolates (Analytics Engine)' : 'one isolate of the Worker'
  setText(
    byId('source'),
    `Counts of ${whose} since ${timeText(total.from)}, as of ${timeText(now.now)}`,
  )
  const since = 'since the start' // the head of the page names the time
  showPairs(byId('figures'), {
    [`requests ${since}`]: numberText(decisionsIn(all)),
    [`refused ${since}`]: `${numberText(refusedIn(all))} (${shareText(refusedIn(all), decisionsIn(all))})`,
    'requests, last minute': `${numberText(rate.perSecond)} a second`,
    'refused, last minute': shareText(rate.refused, 1),
    [`store latency, median ${since}`]: boundText(quantile(latency, 0.5), latency.bounds),
    [`store latency, p99 ${since}`]: boundText(quantile(latency, 0.99), latency.bounds),
    [`HTTP calls ${since}`]: rateText(rate.calls, 'a request'),
    [`billed commands ${since}`]: rateText(rate.commands, 'a request'),
    'cost at the rate of the last minute': rateText(rate.dollarsAMonth, 'a month', dollarText),
    [`fallbacks ${since}`]: `${numberText(fallbacks)} decisions`,
  })
  showRequests(now)
  showOffenders(total.offenders, policies)
  const counted = (title: string, counts: Record<string, number>) =>
    Object.entries(counts).map(([name, count]) => [`${title} ${name}`, numberText(count)])
  showPairs(byId('store'), {
    circuit,
    'HTTP calls': numberText(calls),
    'billed commands': numberText(billedCommands),
    ...(operators && {
      'of them for operators and this page': `${numberText(operators.calls)} calls, ${numberText(operators.billedCommands)} commands`,
    }),
    ...Object.fromEntries([...counted('errors:', errors), ...counted('lost reports:', dropped)]),
  })
}

function showRequests(now: Stats) {
  const rows = byPolicy(now.total.series)
  showOptions(chartPolicy, [
    [ALL, ALL],
    ...rows.map(({ policy }): [string, string] => [`policy ${policy}`, policyText(policy)]),
  ])
  const sum = { policy: ALL, counts: byOutcome(now.total.series) }
  showRows(byId('requests'), rows.length > 1 ? [...rows, sum] : rows, {
    key: (row) => (row === sum ? ALL : `policy ${row.policy}`),
    cells: ({ policy, counts }) => [
      policyText(policy),
      numberText(decisionsIn(counts)),
      ...ofClients.map((outcome) => numberText(counts[outcome])),
      shareText(refusedIn(counts), decisionsIn(counts)),
    ],
  })
  drawChart()
}

function drawChart() {
  if (!stats) return
  const { value } = chartPolicy
  showChart(stats, value === ALL ? undefined : value.slice('policy '.length))
}

function showPolicies() {
  showRows(byId('policies'), policies, {
    key: ({ name }) => name,
    cells: ({ name, limit, windowMs, algorithm, key, mode, bans, decidedBy }) => [
      name,
      algorithm === 'concurrency'
        ? `${limit} in flight`
        : `${numberText(limit)} per ${durationText(windowMs)}`,
      algorithm,
      key.join(' + '),
      mode,
      bans ? 'yes' : 'no',
      decidedBy,
    ],
  })
  showPolicyChoice(policies)
}

function showAbout({ worker, findings }: About) {
  setText(byId('worker'), worker)
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
  showPolicies()
  await Promise.all([showOverrides(policies), showBans(policies)])
}

/** Reads everything once. Returns what is wrong, and the wait until the next attempt in ms. */
async function refresh(): Promise<{ problem: string; waitMs: number }> {
  try {
    await readPolicies()
  } catch (error) {
    return failed(error, NO_API)
  }
  try {
    showStats(await call<Shown>('stats'))
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
  const { problem, waitMs } = document.hidden
    ? { problem: undefined, waitMs: POLL_MS }
    : await refresh()
  if (problem !== undefined) {
    setText(byId('problem'), problem)
    byId('counts').classList.toggle('stale', problem !== '')
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
chartPolicy.addEventListener('change', drawChart)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawChart)
onExplain(() => policies)
// The next reading reports an error.
document.addEventListener(BANS_CHANGED, () => showBans(policies).catch(() => {}))
addEventListener('hashchange', () => openSession().then(refresh)) // an address of a later start
openSession().then(poll)
