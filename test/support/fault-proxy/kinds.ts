import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Exchange } from './exchange.ts'
import { commandIn } from './target.ts'

interface Argument {
  expected: string
  pattern: RegExp
  default: string
}

/** One kind of fault. `run` stops waiting when `signal` aborts. */
export interface Kind {
  /** A short description for `--help`. */
  does: string
  argument?: Argument
  run: (exchange: Exchange, argument: string, signal: AbortSignal) => Promise<unknown> | unknown
}

const milliseconds = (byDefault: number): Argument => ({
  expected: 'milliseconds from 0 to 600000',
  pattern: /^([0-5]?\d{1,5}|600000)$/,
  default: String(byDefault),
})
const status = (byDefault: number): Argument => ({
  expected: 'an HTTP status from 200 to 599',
  pattern: /^[2-5]\d\d$/,
  default: String(byDefault),
})
const offset: Argument = {
  expected: 'milliseconds to add, such as -60000',
  pattern: /^-?\d{1,12}$/,
  default: '-60000',
}

/** Waits for this number of milliseconds. Rejects when the proxy closes. */
const wait = (argument: string, signal: AbortSignal) =>
  sleep(Number(argument), undefined, { signal })

const respondWithError = (code: number, error: string): Kind['run'] =>
  function answer(exchange) {
    exchange.answer({ status: code, body: JSON.stringify({ error }) })
  }

/** Delivers the request and changes the result in the response: a list, or one value. */
const changedResult = (change: (result: unknown) => unknown): Kind['run'] =>
  async function answer(exchange) {
    const { status, body } = await exchange.deliver()
    const { result } = JSON.parse(String(body))
    exchange.answer({ status, body: JSON.stringify({ result: change(result) }) })
  }

const wrongTypes: Record<string, (value: unknown) => unknown> = {
  text: (value) => (typeof value === 'number' ? String(value) : JSON.stringify(value)),
  fraction: (value) =>
    typeof value === 'number' ? value + 0.5 : String(value).replace(/^\d+/, '$&.5'),
  null: () => null,
  nested: (value) => [value],
  boolean: (value) => Number(value) > 0,
}

const changedValues = (change: (value: unknown) => unknown) =>
  changedResult((result) => (Array.isArray(result) ? result.map(change) : change(result)))

const HTML = `<!DOCTYPE html>
<html><head><title>Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>
`

/**
 * All faults by name, in three groups. In the first group the request does not reach the database, or reaches it late.
 * In the second group the database runs the command, but the client gets a late, broken or wrong response. In the third
 * group the proxy responds in place of the database.
 */
export const kinds = {
  delay: {
    does: 'delays the request before it reaches the database (ms)',
    argument: milliseconds(1000),
    async run(exchange, ms, signal) {
      await wait(ms, signal)
      await exchange.pass()
    },
  },
  hang: { does: 'neither delivers nor responds', run: () => {} },
  refuse: {
    does: 'refuses connections',
    // Only for requests that arrived before the port was closed.
    run: (exchange) => exchange.drop(),
  },
  reset: {
    does: 'breaks the connection before it delivers the request',
    run: (exchange) => exchange.drop(),
  },

  late: {
    does: 'delivers, and delays the response (ms)',
    argument: milliseconds(1000),
    async run(exchange, ms, signal) {
      const answer = await exchange.deliver()
      await wait(ms, signal)
      exchange.answer(answer)
    },
  },
  lose: { does: 'delivers, and never responds', run: (exchange) => exchange.deliver() },
  'reset-after': {
    does: 'delivers, and breaks the connection before the response',
    async run(exchange) {
      await exchange.deliver()
      exchange.drop()
    },
  },
  'reset-body': {
    does: 'delivers, and breaks the connection after half of the response',
    async run(exchange) {
      await exchange.begin(await exchange.deliver())
      exchange.drop()
    },
  },
  'stall-body': {
    does: 'delivers, and stops sending after half of the response',
    run: async (exchange) => exchange.begin(await exchange.deliver()),
  },
  drip: {
    does: 'delivers, and sends the response byte by byte (ms between bytes)',
    argument: milliseconds(100),
    run: async (exchange, ms, signal) =>
      exchange.drip(await exchange.deliver(), () => wait(ms, signal)),
  },
  duplicate: {
    does: 'delivers twice, and returns the second response',
    async run(exchange) {
      await exchange.deliver()
      await exchange.pass()
    },
  },
  noscript: {
    does: 'runs SCRIPT FLUSH, then delivers',
    async run(exchange) {
      await exchange.command('SCRIPT', 'FLUSH')
      await exchange.pass()
    },
  },
  clock: {
    does: "shifts the time of Sluice's script, the end of its first argument (ms)",
    argument: offset,
    run: (exchange, ms) => exchange.pass(atAnotherTime(exchange.body, Number(ms))),
  },
  truncated: {
    does: 'delivers, and returns the first half of the JSON',
    async run(exchange) {
      const { status, body } = await exchange.deliver()
      exchange.answer({ status, body: Buffer.from(body).subarray(0, Math.ceil(body.length / 2)) })
    },
  },
  'wrong-types': {
    does: 'delivers, and returns values of a wrong type',
    argument: {
      expected: Object.keys(wrongTypes).join(', '),
      pattern: new RegExp(`^(${Object.keys(wrongTypes).join('|')})$`),
      default: 'text',
    },
    run: (exchange, type, signal) => changedValues(wrongTypes[type]!)(exchange, type, signal),
  },
  'wrong-shape': {
    does: 'delivers, and returns one value too few',
    run: changedResult((result) =>
      Array.isArray(result) ? result.slice(0, -1) : String(result).replace(/ ?[^ ]*$/, ''),
    ),
  },

  status: {
    does: 'responds with this status and an error in JSON',
    argument: status(503),
    run: (exchange, code, signal) =>
      respondWithError(Number(code), 'the service is unavailable')(exchange, code, signal),
  },
  html: {
    does: 'responds with an HTML page and this status',
    argument: status(502),
    run: (exchange, code) =>
      exchange.answer({
        status: Number(code),
        body: HTML,
        headers: { 'content-type': 'text/html' },
      }),
  },
  garbage: {
    does: 'responds with random bytes and this status',
    argument: status(200),
    run: (exchange, code) => exchange.answer({ status: Number(code), body: randomBytes(256) }),
  },
  empty: {
    does: 'responds with an empty body and this status',
    argument: status(200),
    run: (exchange, code) => exchange.answer({ status: Number(code), body: '' }),
  },
  json: {
    does: 'responds with this text and status 200',
    argument: { expected: 'text', pattern: /^/, default: '{}' },
    run: (exchange, body) => exchange.answer({ status: 200, body }),
  },
  redirect: {
    does: 'redirects to this URL with status 307',
    argument: { expected: 'a URL or a path', pattern: /^(https?:\/)?\//, default: '/' },
    run: (exchange, location) => exchange.answer({ status: 307, body: '', headers: { location } }),
  },
  'redis-error': {
    does: 'responds with this Redis error and status 200',
    argument: { expected: 'text', pattern: /^/, default: 'LOADING Redis is loading the dataset' },
    run: (exchange, error, signal) => respondWithError(200, error)(exchange, error, signal),
  },
  unauthorized: {
    does: 'reports a wrong token',
    run: respondWithError(401, 'WRONGPASS invalid or missing auth token'),
  },
  'no-permission': {
    does: 'reports that the token may not run scripts',
    run: respondWithError(400, "NOPERM this user has no permissions to run the 'evalsha' command"),
  },
  'over-quota': {
    does: 'reports that the monthly request quota is used up',
    run: respondWithError(400, 'ERR max requests limit exceeded. Limit: 500000, Usage: 500001.'),
  },
  'daily-quota': {
    does: 'reports that the daily request quota is used up',
    run: respondWithError(400, 'ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.'),
  },
  suspended: {
    does: 'reports that the database is suspended',
    run: respondWithError(
      400,
      'ERR This database has been suspended for exceeding the defined budget limit',
    ),
  },
  'database-full': {
    does: 'reports that the storage quota is used up',
    run: respondWithError(400, 'ERR DB capacity quota exceeded. Threshold: 268435456 bytes.'),
  },
  parrot: {
    does: 'responds with an error that repeats the whole request, including the token',
    argument: status(400),
    run: (exchange, code) => exchange.answer(parrot(exchange, Number(code))),
  },
} satisfies Record<string, Kind>

/** Shifts the time of a script call: its first argument (lua/README.md). An empty argument means the clock of Redis. */
function atAnotherTime(body: Buffer, byMs: number): Buffer {
  const command = commandIn(body)
  if (!command || !/^eval(sha)?$/i.test(String(command[0]))) return body
  const index = 3 + Number(command[2])
  const [, before, time] = /^(.*:)?(\d*)$/.exec(String(command[index])) ?? []
  if (time === undefined) return body
  const now = time === '' ? Date.now() : Number(time)
  return Buffer.from(JSON.stringify(command.with(index, `${before ?? ''}${now + byMs}`)))
}

function parrot({ head, body }: Exchange, code: number): Answer {
  const all = `${head.url} ${JSON.stringify(head.fields)} ${body}`
  return { status: code, body: JSON.stringify({ error: `ERR unknown command: ${all}` }) }
}
