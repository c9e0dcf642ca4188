import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { cpus } from 'node:os'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { createRedis } from './src/connection.ts'
import { startRedis } from './src/redis.ts'

/**
 * How fast is the bridge beside the Redis client that it uses itself, both with the same pipelines, and
 * does its memory stay flat? `node packages/upstash-bridge/bench.ts --help`. Everything runs on this machine.
 */
const { values } = parseArgs({
  options: {
    commands: { type: 'string', default: '500000' },
    pipeline: { type: 'string', default: '100,1000' },
    concurrency: { type: 'string', default: '8' },
    requests: { type: 'string', default: '100000' },
    help: { type: 'boolean' },
  },
})
const USAGE = `node packages/upstash-bridge/bench.ts [--commands N] [--pipeline N] [--concurrency N] [--requests N]
  --commands     commands of each throughput run (500000)
  --pipeline     commands in one pipeline, one run for each (100,1000)
  --concurrency  pipelines under way at once (8)
  --requests     HTTP requests of the memory run (100000)`

const COMMANDS = Number(values.commands)
const PIPELINES = values.pipeline.split(',').map(Number)
const CONCURRENCY = Number(values.concurrency)
const REQUESTS = Number(values.requests)
const SLICES = 10

/** Runs `work` `count` times, `CONCURRENCY` at once, and returns the seconds it took. */
async function timed(count: number, work: (index: number) => Promise<unknown>): Promise<number> {
  let next = 0
  const start = performance.now()
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return (performance.now() - start) / 1000
}

const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY })

async function post(url: string, body: string): Promise<string> {
  const sent = request(url, {
    agent,
    method: 'POST',
    headers: { authorization: 'Bearer dev', 'upstash-encoding': 'base64' },
  })
  sent.end(body)
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text.slice(0, 200)}`)
  return text
}

/** One pipeline: half writes, half reads, values of 32 bytes. */
function pipeline(length: number, index: number): string[][] {
  return Array.from({ length }, (_, at) => {
    const key = `bench:${(index * length + at) % 10_000}`
    return at % 2 === 0 ? ['set', key, 'x'.repeat(32)] : ['get', key]
  })
}

async function throughput(length: number, redisUrl: string, bridgeUrl: string): Promise<void> {
  const client = createRedis(redisUrl, () => false)
  await client.connect()
  const direct = (index: number) =>
    Promise.all(pipeline(length, index).map((command) => client.sendCommand(command)))
  const bridged = async (index: number) =>
    JSON.parse(await post(`${bridgeUrl}/pipeline`, JSON.stringify(pipeline(length, index))))
  const rounds = Math.ceil(COMMANDS / length / SLICES)
  for (const run of [direct, bridged]) await timed(rounds, run) // warm up
  // By turns, so that whatever else this machine does slows both alike.
  let [one, two] = [0, 0]
  for (let slice = 0; slice < SLICES; slice++) {
    one += await timed(rounds, direct)
    two += await timed(rounds, bridged)
  }
  client.destroy()
  const rate = (seconds: number) => Math.round((rounds * SLICES * length) / seconds)
  console.log(
    `pipelines of ${length}, ${CONCURRENCY} at once, ${rounds * SLICES * length} commands`,
  )
  console.log(`  client directly   ${rate(one)} commands/s`)
  console.log(`  through bridge    ${rate(two)} commands/s`)
  console.log(`  ratio             ${(one / two).toFixed(2)}`)
}

const SCRIPT = `#!lua flags=allow-key-locking
local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return n`

async function memory(bridgeUrl: string, pid: number): Promise<void> {
  const rss = () => Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`])) / 1024
  const kinds = [
    (n: number) => post(bridgeUrl, JSON.stringify(['set', `m:${n % 5000}`, n])),
    (n: number) => post(bridgeUrl, JSON.stringify(['eval', SCRIPT, 1, `c:${n % 5000}`, 60_000])),
    (n: number) =>
      post(`${bridgeUrl}/pipeline`, JSON.stringify([['get', `m:${n % 5000}`], ['ping']])),
    (n: number) =>
      post(
        `${bridgeUrl}/multi-exec`,
        JSON.stringify([
          ['incr', 'm'],
          ['echo', `${n}`],
        ]),
      ),
  ]
  const samples: number[] = []
  let seconds = 0
  for (let part = 0; part < 10; part++) {
    seconds += await timed(REQUESTS / 10, (n) => kinds[n % kinds.length]!(n + part * REQUESTS))
    samples.push(Math.round(rss()))
  }
  console.log(`${REQUESTS} HTTP requests (SET, EVAL, pipeline, transaction by turns)`)
  console.log(`  ${Math.round(REQUESTS / seconds)} requests/s`)
  console.log(`  resident memory of the bridge after each tenth, MB: ${samples.join(' ')}`)
}

if (values.help) {
  console.log(USAGE)
} else {
  const redis = await startRedis({ log: console.error })
  const bridge = spawn(
    process.execPath,
    [new URL('./src/cli.ts', import.meta.url).pathname, '--redis', redis.url, '--port', '0'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  try {
    const [line] = await once(createInterface(bridge.stdout), 'line')
    const url = String(line).split('=')[1]!
    console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, ${redis.source}`)
    for (const length of PIPELINES) await throughput(length, redis.url, url)
    await memory(url, bridge.pid!)
  } finally {
    agent.destroy()
    bridge.kill('SIGTERM')
    await redis.stop()
  }
}
