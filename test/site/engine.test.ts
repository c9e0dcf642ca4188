/** The engine of the playground, without a browser. */
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../site/playground/editor/read-config.ts'
import { answer, marksOf, type Played } from '../../site/playground/engine/answer.ts'
import { mostWithin } from '../../site/playground/engine/figures.ts'
import { simulate } from '../../site/playground/engine/simulate.ts'
import { momentText, waitText } from '../../site/playground/engine/times.ts'
import { arrivalsOf, START } from '../../site/playground/engine/traffic.ts'
import { examples } from '../../site/playground/scenarios.ts'
import { fragmentOf, stateOf } from '../../site/playground/state.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { comparable, onModel, scenarios } from '../support/playground.ts'

const played = async (state: (typeof scenarios)[string], watched?: string) =>
  (await answer({ kind: 'play', scenario: { ...state, watched } })) as Played
const optionsOf = (text: string) => readConfig(text).value as ConfigOptions
const exampleOf = (name: string) => scenarios[name]!

test.each(Object.keys(scenarios))(
  'The engine decides each request as the oracle does: %s.',
  async (name) => {
    const { served } = await played(exampleOf(name))
    const decisions = served.map(({ decision }) => comparable(decision.allowed, decision.limits))
    expect(decisions.length).toBeGreaterThan(20)
    expect(decisions).toEqual(onModel(exampleOf(name)))
  },
)

test('A pause of the browser changes no decision: deadlines and live documents are left out.', async () => {
  const [arrival] = arrivalsOf(examples[0]!.traffic, { windowMs: 60_000, limit: 10 })
  const options = optionsOf(
    `defineConfig({ deadline: 1, live: { from: 'redis' }, policies: [{ name: 'a', limit: 5, window: '1m', deadline: 1 }] })`,
  )
  const running = simulate(options, [arrival!])
  const end = performance.now() + 20
  while (performance.now() < end);
  const { served } = await running
  expect(served[0]!.decision.reason).toBe('within-limit')
})

test('The real time is back after a simulation.', async () => {
  const { now } = Date
  await played(exampleOf('fixed-window'))
  expect(Date.now).toBe(now)
})

describe('the worst case of each algorithm is what its page says', () => {
  test.each([
    ['fixed-window', 20],
    ['sliding-window', 19],
    ['sliding-log', 10],
    ['token-bucket', 69],
  ])('%s: %i units in a minute', async (name, most) => {
    expect((await played(exampleOf(name))).summary.most).toBe(most)
  })

  test('Slots: never more in flight than the limit.', async () => {
    const { served } = await played(exampleOf('concurrency'))
    const admitted = served.filter(({ decision }) => decision.allowed)
    const inFlight = admitted.map(
      ({ arrival: { at } }) =>
        admitted.filter(({ arrival }) => arrival.at <= at && at < arrival.at + arrival.durationMs)
          .length,
    )
    expect(Math.max(...inFlight)).toBe(2)
    expect(admitted.length).toBeGreaterThan(10)
  })
})

describe('the lesson says what happened', () => {
  test.each([
    [
      'sliding-window',
      '121 of 140 requests were refused; the first at 1:00, because per-ip had 0 of 10 left. One client got 19 within 1 min, with a limit of 10.',
    ],
    [
      'sliding-log',
      '47 of 60 requests were refused; the first at 1:00, because per-ip had 0 of 10 left. No client got more than 10 within 1 min.',
    ],
    [
      'gcra',
      '21 of 30 requests were refused; the first at 6.3 s, because per-ip admits one request each 1 s. No client got more than 9 within 1 min.',
    ],
    [
      'concurrency',
      '26 of 40 requests were refused; the first at 3 s, because 2 requests were in flight, which is the limit of reports.',
    ],
    [
      'several-limits',
      '175 of 200 requests were refused; the first at 41 s, because login had 0 of 5 left. No client got more than 5 within 1 min.',
    ],
    [
      'llm-tokens',
      '28 of 40 requests were refused; the first at 18 s, because tokens had 50 of 10,000 left, and the request costs 500.',
    ],
    [
      'wait',
      '3 of 30 requests were refused; the first at 6.45 s, because burst had 0 of 10 left. 12 waited for their turn, at most 3.7 s. No client got more than 9 within 10 s.',
    ],
    [
      'plans',
      '24 of 80 requests were refused; the first at 18 s, because per-customer had 0 of 5 left.',
    ],
    [
      'limit-call',
      '16 of 40 calls were refused; the first at 2:52, because invites had 0 of 5 left. No client got more than 5 within 1 h.',
    ],
  ])('%s', async (name, lesson) => {
    const { text, traffic } = examples.find((one) => one.name === name)!
    expect((await played({ text, traffic, log: '' })).lesson).toBe(lesson)
  })

  test.each([
    [`{ name: 'a', limit: 999, window: '1m' }`, 'All 140 requests were admitted.'],
    [
      `{ name: 'a', limit: 5, window: '1m', cost: 6 }`,
      '140 of 140 requests were refused; the first at 55 s, because it costs 6, and a never has more than 5.',
    ],
    [
      `{ name: 'a', limit: 999, window: '1m' }, { name: 'b', limit: 30, window: '1h', mode: 'shadow' }`,
      'All 140 requests were admitted. b in shadow would have refused 110.',
    ],
    [
      `{ name: 'a', limit: 10, window: '1m', penalty: { after: 1, within: '1m', ban: '90s' } }`,
      /because a has banned the client for 1 min 30 s\./,
    ],
    [
      `{ name: 'a', limit: 10, window: '10s' }, { name: 'b', limit: 12, window: '1h' }`,
      /b refused \d+, a refused \d+\./,
    ],
  ])('%s', async (policies, lesson) => {
    const text = `defineConfig({ policies: [${policies}] })`
    expect((await played({ ...exampleOf('sliding-window'), text })).lesson).toMatch(lesson)
  })
})

test('The policy to look at is the one that refuses, and the client is the one with the most requests.', async () => {
  const { policy, clients, samples } = await played(exampleOf('several-limits'))
  expect(policy).toBe('login')
  expect(clients[0]).toEqual(['203.0.113.1', 180])
  const left = samples.map(({ limits }) => limits.find((one) => one.policy === 'login')!.remaining)
  expect(Math.min(...left)).toBe(0)
})

test('The most of a client is not known if the response sets the cost.', async () => {
  expect((await played(exampleOf('llm-tokens'))).isFinal).toBe(false)
  expect((await played(exampleOf('gcra'))).isFinal).toBe(true)
})

test('The chart begins shortly before the first request, and its times are those of the traffic.', async () => {
  const { start, from, to } = await played(exampleOf('fixed-window'))
  expect([from - start, to - start]).toEqual([51_750, 120_000])
})

test('The text has the place of each limit that is a number.', async () => {
  const text = `const C = 4
defineConfig({ policies: [
  { name: 'a', limit: 1_000, window: '1m' }, { name: 'b', limit: C, window: '1m' }, { name: 'c', limit: 7, window: '1m' },
] })`
  const { dials } = await played({ ...exampleOf('fixed-window'), text })
  expect(dials.map(({ policy, value }) => [policy, value])).toEqual([
    ['a', 1000],
    ['c', 7],
  ])
  expect(dials.map(({ from, to }) => text.slice(from, to))).toEqual(['1_000', '7'])
})

test('A call reads its result, and the slots of a call are free when it ends.', async () => {
  const text = `const quota = limits({ jobs: { algorithm: 'concurrency', limit: 1, window: '1m' } })
await quota.limit('jobs', 'report')`
  const { isCall, served } = await played({
    text,
    traffic: { ...examples[0]!.traffic, pattern: 'steady', requests: 30, durationMs: 6000 },
    log: '',
  })
  expect(isCall).toBe(true)
  expect(served.slice(0, 3).map(({ decision }) => decision.allowed)).toEqual([true, false, true])
  expect(served[0]!.called).toContain(`await quota.limit('jobs', 'user-1')\n{\n  "allowed": true`)
})

test.each([
  [0, '0 s'],
  [400, '0.4 s'],
  [31_400, '31 s'],
  [72_000, '1:12'],
  [3_630_000, '1:00:30'],
  [273_600_000, '3 d 4:00:00'],
])('A moment after %i ms is %s.', (ms, text) => {
  expect(momentText(ms)).toBe(text)
})

test.each([
  [250, '250 ms'],
  [1010, '1.1 s'],
  [58_890, '59 s'],
  [59_999, '1 min'],
  [71_001, '1 min 12 s'],
  [7_500_000, '2 h 5 min'],
  [86_399_001, '1 d'],
])('A wait of %i ms is %s: it is never too short.', (ms, text) => {
  expect(waitText(ms)).toBe(text)
})

test('The traffic runs under each algorithm, in the order of the documentation.', async () => {
  const { compared, summary } = await played(exampleOf('fixed-window'))
  expect(compared.map(({ title }) => title)).toEqual([
    'fixed-window',
    'sliding-window',
    'sliding-log',
    'token-bucket',
    'gcra',
  ])
  expect(compared[0]).toMatchObject({ summary })
})

test('The comparison has the first policy alone.', async () => {
  const { compared, summary } = await played(exampleOf('several-limits'))
  const [fixed] = compared
  // The second policy admits 5 logins a minute, the first one 60, and both again from the next window on.
  expect(fixed).toMatchObject({ summary: { most: 120 } })
  expect(summary.most).toBeLessThanOrEqual(10)
})

test('A slot is free for a request at the time at which a response ends.', async () => {
  const [arrival] = arrivalsOf(examples[0]!.traffic, { windowMs: 60_000, limit: 10 })
  const options = optionsOf(
    `defineConfig({ policies: [{ name: 'a', algorithm: 'concurrency', limit: 1, window: '1m' }] })`,
  )
  const arrivals = [0, 999, 1000].map((at) => ({ ...arrival!, at: START + at, durationMs: 1000 }))
  const { served } = await simulate(options, arrivals)
  expect(served.map(({ status }) => status)).toEqual([200, 429, 200])
})

describe('requests that wait for their turn', () => {
  const textOf = (policy: string) =>
    `defineConfig({ policies: [{ name: 'a', limit: 10, window: '1s', ${policy} }], use: [turns()] })`
  const atOnce = (count: number) => {
    const [one] = arrivalsOf(examples[0]!.traffic, { windowMs: 60_000, limit: 10 })
    return Array.from({ length: count }, () => ({ ...one!, at: START }))
  }

  test('They go on in their order and at the rate of the limit. The others are refused at once, with their wait.', async () => {
    const options = optionsOf(textOf(`algorithm: 'gcra', wait: '1s'`))
    const { served, bill } = await simulate(options, atOnce(14))
    // A timer of the limiter fires 1 ms after the turn.
    const waits = [0, 101, 201, 301, 401, 501, 601, 701, 801, 901, 1001]
    expect(served.slice(0, 11).map(({ at }) => at - START)).toEqual(waits)
    expect(served.slice(0, 11).map(({ status }) => status)).toEqual(waits.map(() => 200))
    expect(Object.fromEntries(served[1]!.fields)).toMatchObject({
      'server-timing': 'sluice;desc="waited";dur=101',
    })
    expect(
      served.slice(11).map(({ at, status, decision }) => [at, status, decision.retryAfterMs]),
    ).toEqual(Array(3).fill([START, 429, 1100]))
    // Two for each request that waits. The denial cache repeats the refusal.
    expect(bill.calls).toBe(22)
  })

  test.each([
    ['fixed-window', 20],
    ['sliding-window', 19],
    ['sliding-log', 10],
    ['token-bucket', 19],
  ])(
    '%s: more requests go on than without waits, and at most %i in a second.',
    async (algorithm, most) => {
      const [one] = atOnce(1)
      const arrivals = Array.from({ length: 60 }, (_, n) => ({ ...one!, at: START + n * 50 }))
      const playedWith = async (wait: string) => {
        const { served } = await simulate(
          optionsOf(textOf(`algorithm: '${algorithm}'${wait}`)),
          arrivals,
        )
        return {
          most: mostWithin(served, 1000),
          admitted: served.filter(({ decision }) => decision.allowed).length,
        }
      }
      const waiting = await playedWith(`, wait: '2s'`)
      expect(waiting.most).toBeLessThanOrEqual(most)
      expect(waiting.admitted).toBeGreaterThan((await playedWith('')).admitted)
    },
  )

  test('The page gets the whole run, also the turns after the last arrival.', async () => {
    const text = textOf(`algorithm: 'gcra', limit: 1, window: '10s', wait: '60s'`)
    const { served, to, compared } = await played({ ...exampleOf('gcra'), text })
    expect(served.every(({ arrival, at }) => at >= arrival.at)).toBe(true)
    expect(to).toBe(Math.max(...served.map(({ at }) => at)))
    expect(compared).toHaveLength(5)
  })
})

test('A policy that an algorithm cannot have says why.', async () => {
  const state = { ...exampleOf('fixed-window') }
  state.text = `defineConfig({ policies: [{ name: 'a', algorithm: 'fixed-window', limit: 20000, window: '1m' }] })`
  const { compared } = await played(state)
  expect(compared.find(({ title }) => title === 'sliding-log')).toMatchObject({
    problem: expect.stringContaining('at most 10000 with sliding-log'),
  })
})

test('The bill counts the commands of an admitted and of a refused request, and none of a denial that is cached or of a record that ends.', async () => {
  const arrivals = arrivalsOf(
    { ...examples[0]!.traffic, requests: 4 },
    { windowMs: 60_000, limit: 1 },
  )
  const options = optionsOf(
    `defineConfig({ policies: [{ name: 'a', algorithm: 'fixed-window', limit: 1, window: '1h' }] })`,
  )
  const at = (...ms: number[]) => ms.map((one) => ({ ...arrivals[0]!, at: START + one }))
  expect((await simulate(options, at(0))).bill).toEqual({ calls: 1, commands: 4 })
  expect((await simulate(options, at(0, 1))).bill).toEqual({ calls: 2, commands: 7 })
  expect((await simulate(options, at(0, 1, 2, 3))).bill).toEqual({ calls: 2, commands: 7 })
  // The window of the first client has ended, and its record with it.
  const [first, second] = at(0, 3_600_000)
  const clients = [first!, { ...second!, ip: '203.0.113.9' }]
  expect((await simulate(options, clients)).bill).toEqual({ calls: 2, commands: 8 })
})

test('The most units within a window count each client by itself, and the cost of a request.', async () => {
  const options = optionsOf(
    `defineConfig({ policies: [{ name: 'a', limit: 100, window: '1m', cost: 3 }] })`,
  )
  const [one] = arrivalsOf(examples[0]!.traffic, { windowMs: 60_000, limit: 10 })
  const arrivals = [0, 10, 20, 1000].map((at, n) => ({
    ...one!,
    at: START + at,
    ip: n === 1 ? '203.0.113.9' : '203.0.113.1',
  }))
  const { served } = await simulate(options, arrivals)
  expect(mostWithin(served, 1000)).toBe(6) // the interval is half-open
  expect(mostWithin(served, 1001)).toBe(9)
})

test('A log that is pasted in is played at its own times, with its own clients and paths.', async () => {
  const line = (second: number, ip: string, path: string) =>
    `${ip} - - [24/Nov/2026:12:00:${String(second).padStart(2, '0')} +0000] "POST ${path} HTTP/1.1" 200 5 "-" "curl/8"`
  const log = [
    line(3, '198.51.100.2', '/login'),
    line(1, '198.51.100.1', '/login'),
    line(2, '198.51.100.1', '/login'),
    'no request',
  ].join('\n')
  const state = exampleOf('several-limits')
  const { served, note, from, to } = await played({
    ...state,
    text: state.text.replace('limit: 5', 'limit: 1'),
    traffic: { ...state.traffic, pattern: 'log' },
    log: `${Array(30)
      .fill(line(4, '198.51.100.3', '/'))
      .join('\n')}\n${log}`,
  })
  expect(served.slice(0, 3).map(({ status, arrival }) => [arrival.ip, status])).toEqual([
    ['198.51.100.1', 200],
    ['198.51.100.1', 429],
    ['198.51.100.2', 200],
  ])
  expect(note).toBe('Combined Log Format, 33 requests. 1 lines are not requests.')
  expect(to - from).toBe(3000)
})

test('A client reads the fields and the body of a refusal.', async () => {
  const { served } = await played(exampleOf('fixed-window'))
  const refused = served.find(({ decision }) => !decision.allowed)!
  expect(Object.fromEntries(refused.fields)).toMatchObject({
    ratelimit: '"per-ip";r=0;t=55',
    'retry-after': '55',
  })
  expect(JSON.parse(refused.body!)).toMatchObject({ 'violated-policies': ['per-ip'] })
})

test('A request is explained by the text of sluice explain.', async () => {
  const { text } = exampleOf('several-limits')
  const [arrival] = arrivalsOf(exampleOf('several-limits').traffic, { windowMs: 60_000, limit: 60 })
  const said = await answer({ kind: 'explain', text, arrival: { ...arrival!, method: 'GET' } })
  expect(said).toContain('the method is GET, the policy matches POST')
})

test('Errors of the configuration are marks, and nothing is played.', async () => {
  const text = `defineConfig({ policies: [{ name: 'a', limt: 5, window: '1m' }] })`
  expect(marksOf(text).map(({ severity, message }) => [severity, message])).toContainEqual([
    'error',
    'policies[0].limt: unknown field (in "a") Did you mean limit?',
  ])
  expect(await played({ ...exampleOf('fixed-window'), text })).toMatchObject({
    problem: expect.stringContaining('policies[0].limit'),
  })
})

test('A finding of the linter is a warning at its field.', () => {
  const text = `defineConfig({ policies: [{ name: 'a', limit: 5, window: '1m', key: 'global' }] })`
  const [mark] = marksOf(text)
  expect(mark).toMatchObject({ severity: 'warning', code: 'global-key' })
  expect(text.slice(mark!.from, mark!.to)).toMatch(/^\{ name: 'a'.*\}$|^key: 'global'$/)
})

describe('the address', () => {
  test('An example has its name as the fragment.', async () => {
    expect(await fragmentOf(exampleOf('gcra'))).toBe('gcra')
    expect(await stateOf('gcra')).toEqual(exampleOf('gcra'))
  })

  test('Another state goes through its fragment unchanged.', async () => {
    const state = { ...exampleOf('many clients and a cost'), log: 'ä\n"' }
    const fragment = await fragmentOf(state)
    expect(fragment).toMatch(/^s=[\w-]+$/)
    expect(await stateOf(fragment)).toEqual(state)
  })

  test('A damaged address says so, and one with other values gets those of the first example.', async () => {
    await expect(stateOf('s=AAAA')).rejects.toThrow('The address is damaged')
    await expect(stateOf('gcrs')).rejects.toThrow('There is no example "gcrs"')
    const strange = { text: 5, traffic: { requests: 1e9, pattern: 'x', url: 7 }, log: null }
    const fragment = await fragmentOf(strange as never)
    expect(await stateOf(fragment)).toEqual(exampleOf('sliding-window'))
  })
})
