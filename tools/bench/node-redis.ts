/**
 * `npx node tools/bench/node-redis.ts`: limiters of an app on Node beside each other, with the same Redis and the same client. Prints Markdown.
 *
 * Each contender has a process of its own. A round asks all of them in random order, so that other load on the machine affects all equally, and
 * ratios are those of one round.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { readScriptOptions } from '../../cli/options.ts'
import { type Load, make } from './node-redis/load.ts'
import type { Cost, Order } from './node-redis/process.ts'
import { createRandom } from './random.ts'
import { type BenchServer, openServer } from './server.ts'
import { table, withSpread } from './stack/report/table.ts'
import { quantile, spread } from './statistics.ts'
import { within } from './within.ts'

const USAGE = `Limiters of an app on Node, with the same Redis and the same client: CPU of the process, latency and commands.

  npx node tools/bench/node-redis.ts [options]

  --rounds N  rounds, 1 to 100. Defaults to 15
  --calls N   calls of each contender in a round, 100 to 1000000. Defaults to 4000
  --help      show this text`

/** Each contender is compared with the second of its group; the first is the floor. */
const GROUPS = {
  'By a key, one call at a time': {
    atOnce: 1,
    names: [
      'bare INCR',
      'Sluice, fixed window',
      'Sluice, sliding window',
      'rate-limiter-flexible',
      'rate-limit-redis',
    ],
  },
  'By a key, 64 calls at once': {
    atOnce: 64,
    names: [
      'bare INCR',
      'Sluice, fixed window',
      'Sluice, not batched',
      'rate-limiter-flexible',
      'rate-limit-redis',
    ],
  },
  'An Express app, 16 requests at once': {
    atOnce: 16,
    names: [
      'Express alone',
      'sluice/node',
      'express-rate-limit with rate-limit-redis',
      'rate-limiter-flexible in Express',
    ],
  },
}

const program = fileURLToPath(new URL('node-redis/process.ts', import.meta.url))

interface Contender {
  name: string
  child: ChildProcess
  /** What the calls of one round cost. */
  run(load: Load): Promise<Cost>
}

async function start(name: string, redis: string): Promise<Contender> {
  const child = fork(program, [name], {
    env: { ...process.env, REDIS_URL: redis, SLUICE_SECRET: 'secret' },
  })
  const [{ port }] = (await once(child, 'message')) as [{ port?: number }]
  async function ask<Answer>(order: Order): Promise<Answer> {
    child.send(order)
    const [answer] = await once(child, 'message')
    return answer as Answer
  }
  if (!port) return { name, child, run: (load) => ask<Cost>(load) }
  const agent = new Agent({ keepAlive: true })
  const request = (key: string) =>
    new Promise<void>((resolve, reject) => {
      get({ port, host: '127.0.0.1', agent, headers: { 'x-key': key } }, (response) => {
        if (response.statusCode !== 200) reject(new Error(`${name}: ${response.statusCode}`))
        response.resume().on('end', resolve)
      }).on('error', reject)
    })
  return {
    ...{ name, child },
    async run(load) {
      const before = await ask<number>('cpu')
      const times = await make(request, load)
      const after = await ask<number>('cpu')
      return { cpuUs: (after - before) / load.calls, p50: quantile(times, 0.5) }
    },
  }
}

/** The commands that clients send while an action runs, without those inside scripts. */
async function commandsIn(server: BenchServer, action: () => Promise<unknown>): Promise<number> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  let text = ''
  socket.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  socket.write('MONITOR\r\n')
  await once(socket, 'data')
  await action()
  await server.send('ECHO', 'the end of the action')
  while (!text.includes('the end of the action')) await once(socket, 'data')
  socket.destroy()
  return text.split('\r\n').filter((line) => /^\+\d+\.\d+ \[\d+ (?!lua)/.test(line)).length - 1
}

interface Samples {
  cpuUs: number[]
  redisUs: number[]
  p50: number[]
}

async function measure(server: BenchServer, rounds: number, group: Load & { names: string[] }) {
  const { names, ...load } = group
  const contenders = await Promise.all(names.map((name) => start(name, server.url)))
  const samples = new Map<string, Samples>()
  const commands = new Map<string, number>()
  const random = createRandom(1)
  for (const { name, run } of contenders) {
    samples.set(name, { cpuUs: [], redisUs: [], p50: [] })
    await run(load) // warms up the compiler, and loads scripts
    const sent = await commandsIn(server, () => run({ ...load, calls: load.atOnce * 10 }))
    commands.set(name, sent / (load.atOnce * 10))
  }
  for (let round = 0; round < rounds; round++) {
    const order = contenders.map((one) => ({ one, at: random() })).sort((a, b) => a.at - b.at)
    for (const { one } of order) {
      const before = await server.cpu()
      const { cpuUs, p50 } = await one.run(load)
      const after = await server.cpu()
      const own = samples.get(one.name)!
      own.cpuUs.push(cpuUs)
      own.p50.push(p50)
      if (before !== undefined && after !== undefined)
        own.redisUs.push((after - before) / load.calls)
    }
  }
  for (const { child } of contenders) child.kill()
  const sluice = samples.get(names[1]!)!
  return names.map((name) => {
    const { cpuUs, redisUs, p50 } = samples.get(name)!
    return [
      name,
      withSpread(spread(cpuUs)),
      withSpread(spread(cpuUs.map((us, round) => sluice.cpuUs[round]! / us))),
      redisUs.length > 0 ? withSpread(spread(redisUs)) : '–',
      withSpread(spread(p50)),
      commands.get(name)!.toFixed(2),
    ]
  })
}

const options = readScriptOptions({ rounds: { type: 'string' }, calls: { type: 'string' } }, USAGE)
if (options) {
  const rounds = within('--rounds', options.rounds ?? '15', 1, 100)
  const calls = within('--calls', options.calls ?? '4000', 100, 1_000_000)
  const server = await openServer()
  console.log(
    `${server.name}, Node.js ${process.version}, ${rounds} rounds of ${calls} calls. In parentheses the middle half of the rounds.`,
  )
  for (const [title, { atOnce, names }] of Object.entries(GROUPS)) {
    const lines = await measure(server, rounds, { atOnce, calls, names })
    const head = ['', 'CPU, µs', `CPU of ${names[1]}, ×`, 'CPU of Redis, µs', 'p50, ms', 'commands']
    console.log(`\n${title}:\n\n${table(head, lines)}`)
  }
  await server.stop()
}
