import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { cpus } from 'node:os'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { createClient, createCluster } from 'redis'
import { startRedis } from './src/redis.ts'
import { startCluster } from './src/redis-cluster.ts'

/**
 * Benchmark of the bridge. Compares its throughput with that of the Redis client it uses, for the same pipelines, and
 * measures its memory over many requests. Everything runs on this machine.
 */
const { values } = parseArgs({
  options: {
    commands: { type: 'string', default: '2000000' },
    pipeline: { type: 'string', default: '100,1000' },
    concurrency: { type: 'string', default: '8' },
    requests: { type: 'string', default: '100000' },
    cluster: { type: 'boolean' },
    help: { type: 'boolean' },
  },
})
const USAGE = `Measures the throughput and the memory of the Upstash bridge.

  node packages/upstash-bridge/bench.ts [options]

  --commands N     commands in each throughput run (default 2000000)
  --pipeline N,N   commands in one pipeline; one run for each value (default 100,1000)
  --concurrency N  pipelines in flight (default 8)
  --requests N     HTTP requests in the memory run; 0 omits it (default 100000)
  --cluster        a cluster of three masters instead of one server
  --help           show this text`

const COMMANDS = Number(values.commands)
const PIPELINES = values.pipeline.split(',').map(Number)
const CONCURRENCY = Number(values.concurrency)
const REQUESTS = Number(values.requests)
const SLICES = 10

/** Runs `work` `count` times with `CONCURRENCY` workers and returns the duration in seconds. */
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

/** One pipeline: alternating writes and reads of 32-byte values. */
function pipeline(length: number, index: number): string[][] {
  return Array.from({ length }, (_, at) => {
    const key = `bench:${(index * length + at) % 10_000}`
    return at % 2 === 0 ? ['set', key, 'x'.repeat(32)] : ['get', key]
  })
}

/** The client of the package `redis`, connected without the bridge. */
async function connect(urls: string[]) {
  if (values.cluster) {
    const client = createCluster({ rootNodes: urls.map((url) => ({ url })), RESP: 2 })
    await client.connect()
    const send = (command: string[]) => client.sendCommand(command[1], false, command)
    return { send, close: () => client.destroy() }
  }
  // Without the timer for each command, as in the bridge.
  const client = createClient({ url: urls[0]!, RESP: 2, commandOptions: { timeout: 0 } })
  await client.connect()
  const send = (command: string[]) => client.sendCommand(command)
  return { send, close: () => client.destroy() }
}

async function throughput(length: number, urls: string[], bridgeUrl: string): Promise<void> {
  const client = await connect(urls)
  const direct = (index: number) => Promise.all(pipeline(length, index).map(client.send))
  const bridged = async (index: number) =>
    JSON.parse(await post(`${bridgeUrl}/pipeline`, JSON.stringify(pipeline(length, index))))
  const rounds = Math.ceil(COMMANDS / length / SLICES)
  for (const run of [direct, bridged]) await timed(rounds, run) // warm up
  // The two alternate, so that other load on this machine slows both equally.
  let [directSeconds, bridgedSeconds] = [0, 0]
  for (let slice = 0; slice < SLICES; slice++) {
    directSeconds += await timed(rounds, direct)
    bridgedSeconds += await timed(rounds, bridged)
  }
  client.close()
  const rate = (seconds: number) => Math.round((rounds * SLICES * length) / seconds)
  console.log(
    `${rounds * SLICES * length} commands in pipelines of ${length}, ${CONCURRENCY} in flight`,
  )
  console.log(`  Redis client       ${rate(directSeconds)} commands/s`)
  console.log(`  through the bridge ${rate(bridgedSeconds)} commands/s`)
  console.log(`  bridge / client    ${(directSeconds / bridgedSeconds).toFixed(2)}`)
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
  console.log(`${REQUESTS} HTTP requests (alternating SET, EVAL, pipeline and transaction)`)
  console.log(`  ${Math.round(REQUESTS / seconds)} requests/s`)
  console.log(`  resident memory of the bridge after each tenth of them, MB: ${samples.join(' ')}`)
}

if (values.help) {
  console.log(USAGE)
} else {
  const redis = values.cluster
    ? await startCluster({ replicas: 0 })
    : await startRedis({ log: console.error }).then((one) => ({
        ...one,
        nodes: [one],
        urls: [one.url],
      }))
  const target = values.cluster
    ? ['--cluster', redis.urls.map((url) => new URL(url).host).join(',')]
    : ['--redis', redis.urls[0]!]
  const bridge = spawn(
    process.execPath,
    [new URL('./src/main.ts', import.meta.url).pathname, ...target, '--port', '0'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  try {
    const [line] = await once(createInterface(bridge.stdout), 'line')
    const url = String(line).split('=')[1]!
    console.log(
      `Node ${process.version}, ${cpus().length} CPUs (${cpus()[0]?.model}), ${redis.nodes[0]!.source}`,
    )
    for (const length of PIPELINES) await throughput(length, redis.urls, url)
    if (REQUESTS > 0) await memory(url, bridge.pid!)
  } finally {
    agent.destroy()
    bridge.kill('SIGTERM')
    await redis.stop()
  }
}
