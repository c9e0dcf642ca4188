/** Quotas that do not work, and quotas that are expensive. */
import { turns } from '../../../src/features/turns/index.ts'
import { casesOf, one, priced, testFindings, testMessages } from '../../support/lint.ts'

testFindings({
  'A cost is above the limit.': ['cost-never-fits policies[0].cost', priced(101), priced(100)],
  'A rule has a cost above the limit.': [
    'cost-never-fits policies[0].cost[1].cost',
    priced([
      { path: '/a', cost: 2 },
      { path: '/b', cost: 101 },
    ]),
    priced([
      { path: '/a', cost: 2 },
      { path: '/b', cost: 100 },
    ]),
  ],
  'The cost in otherwise is above the limit.': [
    'cost-never-fits policies[0].cost.otherwise',
    priced({ rules: [{ path: '/a', cost: 1 }], otherwise: 101 }),
    priced({ rules: [{ path: '/a', cost: 1 }], otherwise: 100, header: 'x-cost' }),
  ],
  'A cost is above the burst of gcra, which defaults to 1.': [
    'cost-never-fits policies[0].cost.rules[0].cost',
    priced({ rules: [{ method: 'POST', cost: 2 }] }, { algorithm: 'gcra' }),
    priced({ rules: [{ method: 'POST', cost: 2 }] }, { algorithm: 'gcra', burst: 2 }),
  ],
  'Every request costs 0.': [
    'never-charges policies[0].cost',
    priced(0),
    priced([{ method: 'GET', cost: 0 }]),
  ],
  'A rule with a cost of 0 matches every request.': [
    'never-charges policies[0].cost',
    priced([{ method: ['GET', 'POST'], cost: 0 }], { match: { method: ['GET', 'POST'] } }),
    priced({ response: 'x-price', otherwise: 0 }),
  ],
  'Every request costs 0, and the policy has a penalty.': [
    'never-charges policies[0].cost',
    priced(0, { penalty: { after: 3, within: '1m', ban: '1h' } }),
    priced(0, { penalty: 'manual' }),
  ],
  'A sliding log has more than 1000 entries.': [
    'large-log policies[0].limit',
    one({ algorithm: 'sliding-log', limit: 1001 }),
    one({ algorithm: 'sliding-log', limit: 1000 }),
  ],
  'A sliding log has more than 1000 entries in one plan.': [
    'large-log policies[0].limits',
    one({ algorithm: 'sliding-log', limit: 5, limits: { pro: 1001 }, plan: 'country' }),
    one({ algorithm: 'sliding-log', limit: 5, limits: { pro: 1000 }, plan: 'country' }),
  ],
  'All requests share one key.': [
    'global-key policies[0].key',
    one({ key: ['global', 'method'], match: { path: '/*' } }),
    one({ key: 'global', match: { path: '/api/*' } }),
  ],
  'The configuration has no policies.': [
    'no-policies policies',
    { policies: [] },
    { policies: [], deny: { ip: '203.0.113.7' } },
  ],
  'The configuration has neither policies nor a live document.': [
    'no-policies policies',
    { policies: [], allow: { ip: '203.0.113.7' }, accept: [] },
    { policies: [], live: { from: 'redis' } },
  ],
})

/** unlikely-duration */
testFindings({
  ...casesOf([60, 300, 900, 3600, 86_400, 604_800, 2_592_000], (window) => [
    `A window of ${window} is probably in seconds.`,
    'unlikely-duration policies[0].window',
    one({ window }),
    one({ window: window * 1000, limit: 10 }),
  ]),
  'A window is shorter than a second.': [
    'unlikely-duration policies[0].window',
    one({ window: '999ms' }),
    one({ window: 'day', algorithm: 'fixed-window' }),
  ],
  'A ban of 3600 is probably in seconds.': [
    'unlikely-duration policies[0].penalty.ban',
    one({ penalty: { after: 3, within: '1m', ban: 3600 } }),
    one({ penalty: { after: 3, within: 60_000, ban: 3_600_000 } }),
  ],
  'A deadline is written in seconds.': [
    'unlikely-duration policies[0].deadline',
    one({ deadline: 1 }),
    one({ deadline: 100 }),
  ],
  ...casesOf([2, 60], (wait) => [
    `A wait of ${wait} is probably in seconds.`,
    'unlikely-duration policies[0].wait',
    one({ wait }, { use: [turns()] }),
    one({ wait: `${wait}ms` }, { use: [turns()] }),
  ]),
  'A wait is too long for a number of seconds.': [
    'unlikely-duration policies[0].wait',
    one({ wait: 1 }, { use: [turns()] }),
    one({ wait: 300 }, { use: [turns()] }),
  ],
  'The deadline of the configuration is too long.': [
    'unlikely-duration deadline',
    one({}, { deadline: '1m' }),
    one({}, { deadline: '1s' }),
  ],
  'The timeout of the origin is too short.': [
    'unlikely-duration originTimeout',
    one({}, { originTimeout: 60 }),
    one({}, { originTimeout: '60s' }),
  ],
})

testMessages([
  [
    priced(20, { limit: 50, limits: { free: 10, pro: 100 }, plan: 'country' }),
    '"a" never admits a request that costs 20: its smallest limit is 10.',
  ],
  [
    priced(2, { algorithm: 'gcra' }),
    '"a" never admits a request that costs 2: its burst is 1 by default.',
  ],
  [one({ window: 60 }), '"a" has a window of 60 ms.'],
  [one({ window: 3600 }), '"a" has a window of 3600 ms, which is 3.6 s.'],
  [priced(0), '"a" never charges a request, so it never refuses one.'],
])
