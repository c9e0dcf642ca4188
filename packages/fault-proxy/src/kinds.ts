import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Exchange } from './exchange.ts'
import { commandIn } from './target.ts'

interface Argument {
  expected: string
  pattern: RegExp
  default: string
}

/** One kind of fault. A slow one stops at `signal`. */
export interface Kind {
  /** A short description. */
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

/** A delay that ends early when the proxy closes. */
const wait = (argument: string, signal: AbortSignal) =>
  sleep(Number(argument), undefined, { signal })

const says = (code: number, error: string): Kind['run'] =>
  function answer(exchange) {
    exchange.answer({ status: code, body: JSON.stringify({ error }) })
  }

/** The real answer, its counters turned into something else. */
const instead = (change: (numbers: number[]) => unknown): Kind['run'] =>
  async function answer(exchange) {
    const { status, body } = await exchange.deliver()
    const { result } = JSON.parse(String(body))
    exchange.answer({ status, body: JSON.stringify({ result: change(result) }) })
  }

const wrongTypes: Record<string, (numbers: number[]) => unknown> = {
  text: (numbers) => numbers.map(String),
  fraction: (numbers) => numbers.map((number) => number + 0.5),
  null: (numbers) => numbers.map(() => null),
  nested: (numbers) => numbers.map((number) => [number]),
  boolean: (numbers) => numbers.map((number) => number > 0),
}

const HTML = `<!DOCTYPE html>
<html><head><title>Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>
`

/**
 * Every fault by its name. Those of the first group never reach the database; those of the second do, so that the call may
 * have counted although its client never learns; those of the third answer in its place.
 */
export const kinds = {
  delay: {
    does: 'delivers late',
    argument: milliseconds(1000),
    async run(exchange, ms, signal) {
      await wait(ms, signal)
      await exchange.pass()
    },
  },
  hang: { does: 'neither delivers nor answers', run: () => {} },
  refuse: {
    does: 'refuses connections',
    // What was on a connection already when the port was shut.
    run: (exchange) => exchange.drop(),
  },
  reset: {
    does: 'breaks the connection instead of delivering',
    run: (exchange) => exchange.drop(),
  },

  late: {
    does: 'delivers, and answers late',
    argument: milliseconds(1000),
    async run(exchange, ms, signal) {
      const answer = await exchange.deliver()
      await wait(ms, signal)
      exchange.answer(answer)
    },
  },
  lose: { does: 'delivers, and never answers', run: (exchange) => exchange.deliver() },
  'reset-after': {
    does: 'delivers, and breaks the connection before the answer',
    async run(exchange) {
      await exchange.deliver()
      exchange.drop()
    },
  },
  'reset-body': {
    does: 'delivers, and breaks the connection amid the answer',
    async run(exchange) {
      await exchange.begin(await exchange.deliver())
      exchange.drop()
    },
  },
  'stall-body': {
    does: 'delivers, and falls silent amid the answer',
    run: async (exchange) => exchange.begin(await exchange.deliver()),
  },
  drip: {
    does: 'delivers, and answers a byte at a time',
    argument: milliseconds(100),
    run: async (exchange, ms, signal) =>
      exchange.drip(await exchange.deliver(), () => wait(ms, signal)),
  },
  duplicate: {
    does: 'delivers twice, and gives the second answer',
    async run(exchange) {
      await exchange.deliver()
      await exchange.pass()
    },
  },
  noscript: {
    does: 'drops the script cache, by SCRIPT FLUSH, before delivering',
    async run(exchange) {
      await exchange.command('SCRIPT', 'FLUSH')
      await exchange.pass()
    },
  },
  clock: {
    does: "moves the database's clock, as our script sees it",
    argument: offset,
    run: (exchange, ms) => exchange.pass(atAnotherTime(exchange.body, Number(ms))),
  },
  truncated: {
    does: 'delivers, and answers with half of the JSON',
    async run(exchange) {
      const { status, body } = await exchange.deliver()
      exchange.answer({ status, body: Buffer.from(body).subarray(0, Math.ceil(body.length / 2)) })
    },
  },
  'wrong-types': {
    does: 'delivers, and answers with values of another type',
    argument: {
      expected: Object.keys(wrongTypes).join(', '),
      pattern: new RegExp(`^(${Object.keys(wrongTypes).join('|')})$`),
      default: 'text',
    },
    run: (exchange, type, signal) => instead(wrongTypes[type]!)(exchange, type, signal),
  },
  'wrong-shape': {
    does: 'delivers, and answers with one value too few',
    run: instead((numbers) => numbers.slice(0, -1)),
  },

  status: {
    does: 'answers with this status and an error in JSON',
    argument: status(503),
    run: (exchange, code, signal) =>
      says(Number(code), 'the service is unavailable')(exchange, code, signal),
  },
  html: {
    does: 'answers with a page of HTML',
    argument: status(502),
    run: (exchange, code) =>
      exchange.answer({
        status: Number(code),
        body: HTML,
        headers: { 'content-type': 'text/html' },
      }),
  },
  garbage: {
    does: 'answers with random bytes',
    argument: status(200),
    run: (exchange, code) => exchange.answer({ status: Number(code), body: randomBytes(256) }),
  },
  empty: {
    does: 'answers with nothing',
    argument: status(200),
    run: (exchange, code) => exchange.answer({ status: Number(code), body: '' }),
  },
  json: {
    does: 'answers with this text, status 200',
    argument: { expected: 'text', pattern: /^/, default: '{}' },
    run: (exchange, body) => exchange.answer({ status: 200, body }),
  },
  redirect: {
    does: 'sends the client to this URL, with 307',
    argument: { expected: 'a URL or a path', pattern: /^(https?:\/)?\//, default: '/' },
    run: (exchange, location) => exchange.answer({ status: 307, body: '', headers: { location } }),
  },
  'redis-error': {
    does: 'answers with this error of Redis, status 200',
    argument: { expected: 'text', pattern: /^/, default: 'LOADING Redis is loading the dataset' },
    run: (exchange, error, signal) => says(200, error)(exchange, error, signal),
  },
  unauthorized: {
    does: 'says that the token is wrong',
    run: says(401, 'WRONGPASS invalid or missing auth token'),
  },
  'no-permission': {
    does: 'says that the token may not run scripts',
    run: says(400, "NOPERM this user has no permissions to run the 'evalsha' command"),
  },
  'over-quota': {
    does: "says that the month's requests are used up",
    run: says(400, 'ERR max requests limit exceeded. Limit: 500000, Usage: 500001.'),
  },
  'daily-quota': {
    does: "says that the day's requests are used up",
    run: says(400, 'ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.'),
  },
  suspended: {
    does: 'says that the database is suspended',
    run: says(400, 'ERR This database has been suspended for exceeding the defined budget limit'),
  },
  'database-full': {
    does: 'says that the database holds as much as its plan allows',
    run: says(400, 'ERR DB capacity quota exceeded. Threshold: 268435456 bytes.'),
  },
  parrot: {
    does: 'answers with an error that repeats all it was sent, token and all',
    argument: status(400),
    run: (exchange, code) => exchange.answer(parrot(exchange, Number(code))),
  },
} satisfies Record<string, Kind>

/** The same call at another time: `now` is the first of the script's arguments (lua/README.md), empty for the server's own. */
function atAnotherTime(body: Buffer, byMs: number): Buffer {
  const command = commandIn(body)
  if (!command || !/^eval(sha)?$/i.test(String(command[0]))) return body
  const index = 3 + Number(command[2])
  const now = command[index] === '' ? Date.now() : Number(command[index])
  return Buffer.from(JSON.stringify(command.with(index, String(now + byMs))))
}

function parrot({ head, body }: Exchange, code: number): Answer {
  const all = `${head.url} ${JSON.stringify(head.fields)} ${body}`
  return { status: code, body: JSON.stringify({ error: `ERR unknown command: ${all}` }) }
}
