import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { overrides } from '../../../support/features.ts'
import { KEY, problems, problemsOf, valid } from '../../../support/parse.ts'

const PATH = 'a path like "/login", "/users/:id" or "/api/*"'
const VALUES = 'an object of names and values like { "x-plan": "free" }'
const NAME = 'a name of up to 64 letters, digits, "_", "." or "-", starting with a letter or digit'
const FIELDS =
  'one of the fields host, path, method, header, body, country, ip, query, jwt, apiKey, asn, verifiedBot, ja4, botScore, not'
const HOST = 'a host like "api.example.com" or "*.example.com"'
const DURATION = 'a duration like "10s", or whole milliseconds'
const SLOT = 'no value (a slot is released when its request ends)'
const STATUS = 'a status like 401, "4xx" or "400-403"'
const MORE =
  "(for more write algorithm: 'fixed-window', or count larger units, such as cost: { usage: { 'usage.total_tokens': 0.01 } })"
const lease = { max: 10, ttl: '5s' }
const LEASE = '{"max":10,"ttl":"5s"}'
const AFTERWARDS = `lease: no value (the cost is known only after the response) | ${LEASE}`
const penalty = { after: 3, within: '1m', ban: '10s' }
const plans = { limits: { pro: 50 }, plan: 'header:x-plan' }
const concurrency = { algorithm: 'concurrency' }

describe('the problems of a policy', () => {
  test.each([
    ['sliding-log', { penalty }],
    ['concurrency', { penalty }],
    ['sliding-log', { overrides: true }],
    ['concurrency', { overrides: true, penalty }],
  ])(
    'A configuration whose %s policies with %o need more keys than one call accepts is refused.',
    (algorithm, more) => {
      const some = (count: number) => ({
        use: [overrides()],
        policies: Array.from({ length: count }, (_, index) => ({
          ...valid,
          name: `p${index}`,
          algorithm,
          ...more,
        })),
      })
      expect(parseConfig(some(64)).policies).toHaveLength(64)
      expect(problems(some(65))).toEqual([
        expect.stringMatching(
          /^policies: at most 128 policies, counting each sliding-log, concurrency or distinct policy with penalty or overrides twice \|/,
        ),
      ])
    },
  )

  test.each<[object, unknown]>([
    [{ countOnly: 'failures' }, `countOnly: ${STATUS} | "failures"`],
    [{ countOnly: [401, 600] }, `countOnly[1]: ${STATUS} | 600`],
    [{ countOnly: '403-401' }, `countOnly: ${STATUS} | "403-401"`],
    [{ countOnly: [] }, 'countOnly: at least one value | []'],
    [{ countOnly: [[401]] }, `countOnly[0]: ${STATUS} | [401]`],
    [{ countOnly: [{ toString: 1 }] }, `countOnly[0]: ${STATUS} | {"toString":1}`],
    [
      { ...plans, plan: { key: 'header:a', table: { toString: 1 } } },
      'plan.table: the name of a table | {"toString":1}',
    ],
    [{ penalty: 3 }, 'penalty: an object | 3'],
    [{ penalty: { ...penalty, after: 0 } }, 'penalty.after: a whole number of at least 1 | 0'],
    [{ penalty: { ...penalty, ban: undefined } }, `penalty.ban: ${DURATION} | nothing`],
    [{ penalty: { ...penalty, max: '1s' } }, 'penalty.max: at least as long as ban | "1s"'],
    [
      { limits: { pro: 50 } },
      'plan: the key part that holds the plan of a request, like "header:x-plan" | nothing',
    ],
    [{ plan: 'header:x-plan' }, 'limits: a limit for each plan | nothing'],
    [{ ...plans, limits: 7 }, 'limits: an object like { free: 100, pro: 5000 } | 7'],
    [{ ...plans, limits: { pro: 0 } }, 'limits.pro: a whole number of at least 1 | 0'],
    [
      { ...plans, limits: JSON.parse('{"__proto__":5}') },
      'limits: names other than __proto__, prototype and constructor | {"__proto__":5}',
    ],
    [
      { ...plans, limits: { big: 10_001 }, algorithm: 'sliding-log' },
      'limits.big: at most 10000 with sliding-log (sliding-window allows more) | 10001',
    ],
    [
      { ...plans, limits: { big: 2 ** 40 }, window: '7d' },
      `limits.big: at most 4964285 with sliding-window and this window ${MORE} | 1099511627776`,
    ],
    [{ ...plans, plan: 'x-plan' }, `plan: ${KEY} | "x-plan"`],
    [{ ...plans, plan: 'path:tier' }, 'plan: a match.path with the parameter :tier | "path:tier"'],
    [
      { ...plans, plan: { key: 'header:a', table: 'customers' } },
      'plan.table: the name of a table in tables | "customers"',
    ],
    [{ window: 'month' }, 'window: a duration (calendar windows require fixed-window) | "month"'],
    [
      { timeZone: 'UTC' },
      'timeZone: no value (only the windows day, week and month have a time zone) | "UTC"',
    ],
    [
      { algorithm: 'fixed-window', window: 'day', timeZone: 'Berlin' },
      'timeZone: a time zone like "Europe/Berlin" | "Berlin"',
    ],
    [
      { algorithm: 'fixed-window', window: 'day', align: 'clock' },
      'align: no value (a calendar window opens when its period begins) | "clock"',
    ],
    [{ ...concurrency, burst: 5 }, 'burst: no value (concurrency has no burst) | 5'],
    [{ ...concurrency, limit: 10_001 }, 'limit: at most 10000 with concurrency | 10001'],
    [{ ...concurrency, countOnly: 401 }, `countOnly: ${SLOT} | 401`],
    [{ ...concurrency, cost: { response: 'x-price' } }, `cost.response: ${SLOT} | "x-price"`],
    [
      { ...concurrency, onStoreError: 'local' },
      'onStoreError: allow or deny (an isolate cannot count the slots of other isolates) | "local"',
    ],
    [{ lease: 10 }, 'lease: an object | 10'],
    [{ lease: { ...lease, max: 1 } }, 'lease.max: a whole number from 2 to 10000 | 1'],
    [{ lease: { ...lease, max: 10_001 } }, 'lease.max: a whole number from 2 to 10000 | 10001'],
    [{ lease: { max: 10 } }, `lease.ttl: ${DURATION} | nothing`],
    [{ lease: { ...lease, ttl: '61s' } }, 'lease.ttl: a duration of at most 60s | "61s"'],
    [
      { lease, algorithm: 'sliding-log' },
      `lease: no value (sliding-log guarantees the limit in every window) | ${LEASE}`,
    ],
    [{ ...concurrency, lease }, `lease: no value (a slot belongs to one request) | ${LEASE}`],
    [{ lease, countOnly: 401 }, AFTERWARDS],
    [{ lease, cost: { response: 'x-price' } }, AFTERWARDS],
    [{ lease, penalty }, `lease: no value (leased units would bypass a ban) | ${LEASE}`],
    [{ lease, penalty: 'manual' }, `lease: no value (leased units would bypass a ban) | ${LEASE}`],
    [{ cost: { response: 'a b' } }, 'cost.response: a header name like "Sluice-Cost" | "a b"'],
    [{ name: '' }, `name: ${NAME} | ""`],
    [{ name: 'a b' }, `name: ${NAME} | "a b"`],
    [{ name: 'a'.repeat(65) }, `name: ${NAME} | "${'a'.repeat(59)}…`],
    [{ name: 7 }, `name: ${NAME} | 7`],
    [
      { algorithm: 'fixed' },
      'algorithm: one of fixed-window, sliding-window, sliding-log, concurrency, token-bucket, gcra | "fixed"',
    ],
    [{ limit: 0 }, 'limit: a whole number of at least 1 | 0'],
    [{ limit: 1.5 }, 'limit: a whole number of at least 1 | 1.5'],
    [{ limit: 2 ** 53 }, 'limit: a whole number of at most 9007199254740991 | 9007199254740992'],
    [{ limit: NaN }, 'limit: a whole number of at least 1 | NaN'],
    [{ limit: '5' }, 'limit: a whole number of at least 1 | "5"'],
    [{ limit: undefined }, 'limit: a whole number of at least 1 | nothing'],
    [{ window: '10 minuts' }, `window: ${DURATION} | "10 minuts"`],
    [{ window: undefined }, `window: ${DURATION} | nothing`],
    [
      { limit: 2 ** 40, window: '7d' },
      `limit: at most 4964285 with sliding-window and this window ${MORE} | 1099511627776`,
    ],
    [
      { algorithm: 'gcra', burst: 2 ** 40, window: '7d' },
      `burst: at most 4964285 with gcra and this window ${MORE} | 1099511627776`,
    ],
    [
      { algorithm: 'sliding-log', limit: 10_001 },
      'limit: at most 10000 with sliding-log (sliding-window allows more) | 10001',
    ],
    [{ burst: 5 }, 'burst: no value (sliding-window has no burst) | 5'],
    [{ algorithm: 'gcra', burst: 0 }, 'burst: a whole number of at least 1 | 0'],
    [{ align: 'clock' }, 'align: no value (only fixed-window has align) | "clock"'],
    [{ algorithm: 'fixed-window', align: 'noon' }, 'align: one of first-request, clock | "noon"'],
    [{ key: 'cookie' }, `key: ${KEY} | "cookie"`],
    [{ key: 7 }, `key: ${KEY} | 7`],
    [{ key: { ip: 7 } }, 'key.ip: an object | 7'],
    ...[{ window: 'day' }, { align: 'clock' }, { burst: 5 }].map((more): [object, unknown] => [
      { algorithm: 'fixed', ...more },
      expect.stringMatching(/^algorithm: one of .* \| "fixed"$/),
    ]),
    [
      { algorithm: 'fixed-window', window: 'days', timeZone: 'Europe/Berlin' },
      `window: ${DURATION} | "days"`,
    ],
    [{ key: 'path:id', match: { path: '/:id', host: 7 } }, `match.host: ${HOST} | 7`],
    ...[{}, { match: { path: '/:identity' } }].map((match): [object, string] => [
      { key: 'path:id', ...match },
      'key: a match.path with the parameter :id | "path:id"',
    ]),
    [{ onMissingKey: 'ignore' }, 'onMissingKey: one of share, skip, refuse, { key } | "ignore"'],
    [{ onMissingKey: { key: 'x' } }, `onMissingKey.key: ${KEY} | "x"`],
    [
      { onMissingKey: { key: ['ip', 'path:id'] } },
      'onMissingKey.key[1]: a match.path with the parameter :id | "path:id"',
    ],
    [{ accept: 7 }, 'accept: a code like "no-origin" | 7'],
    [{ match: { country: 'Germany' } }, 'match.country: a country code like "DE" | "Germany"'],
    [
      { match: { ip: '10.0.0.1/8' } },
      'match.ip: an IP address, or a network without host bits like "203.0.113.0/24" | "10.0.0.1/8"',
    ],
    [{ match: { header: 'x-a' } }, `match.header: ${VALUES} | "x-a"`],
    [{ match: { header: { 'x a': true } } }, `match.header: ${VALUES} | {"x a":true}`],
    [{ match: { header: { constructor: 'x' } } }, `match.header: ${VALUES} | {"constructor":"x"}`],
    [
      { match: { header: { 'x-a': 'a*b' } } },
      'match.header.x-a: true, or a string with "*" only at its start or end, like "curl/*" | "a*b"',
    ],
    [{ match: { not: { hots: 'a' } } }, `match.not.hots: ${FIELDS} | "a"`],
    [{ match: { path: '/:id/x/:id' } }, `match.path: ${PATH} | "/:id/x/:id"`],
    [{ cost: [{ method: 'POST' }] }, 'cost[0].cost: a whole number of at least 0 | nothing'],
    [{ cost: { header: 'a b' } }, 'cost.header: a header name like "Sluice-Cost" | "a b"'],
    [{ key: ['ip', 'header:a b'] }, `key[1]: ${KEY} | "header:a b"`],
    [{ key: [] }, 'key: at least one value | []'],
    [{ key: { ip: { v6: 129 } } }, 'key.ip.v6: a whole number from 1 to 128 | 129'],
    [{ match: 'x' }, 'match: an object | "x"'],
    [{ match: { path: '' } }, `match.path: ${PATH} | ""`],
    [{ match: { path: 'login' } }, `match.path: ${PATH} | "login"`],
    [{ match: { path: ['/a', '/*/b'] } }, `match.path[1]: ${PATH} | "/*/b"`],
    [{ match: { host: 'https://a.b' } }, `match.host: ${HOST} | "https://a.b"`],
    [{ match: { method: 'GET POST' } }, 'match.method: a method like "POST" | "GET POST"'],
    [{ match: { methods: 'GET' } }, `match.methods: ${FIELDS} | "GET"`],
    [{ cost: -1 }, 'cost: a whole number of at least 0 | -1'],
    [{ mode: 'dry-run' }, 'mode: one of enforce, shadow | "dry-run"'],
    [{ onStoreError: 'open' }, 'onStoreError: one of allow, deny, local | "open"'],
    [{ localShare: 0 }, 'localShare: a number above 0 and at most 1 | 0'],
    [{ localShare: 1.5 }, 'localShare: a number above 0 and at most 1 | 1.5'],
    [{ deadline: 'soon' }, `deadline: ${DURATION} | "soon"`],
    [{ deadline: '30d' }, 'deadline: a duration of less than 25 days | "30d"'],
  ])('A policy with %j is refused with one problem.', (change, problem) => {
    expect(problemsOf(change)).toEqual([problem])
  })
})
