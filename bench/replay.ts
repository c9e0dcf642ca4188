/** `npx node bench/replay.ts`: measures the speed and the memory of `npx sluice replay` with a generated log. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readScriptOptions } from '../cli/options.ts'
import { createRandom } from './random.ts'

const USAGE = `Measures the speed and the memory of a replay. Generates a log in the Combined Log Format, a day
long, and replays it with the policy { limit: 60, window: '1m' } for each address. Measures the package in
dist: run npm run build first.

  npx node bench/replay.ts [options]

  --lines N    lines of the log (default 1000000; 10000000 need 1.6 GB in the temporary folder)
  --clients N  addresses (default 50000)
  --ms         stamps with milliseconds: each line is decided once, not in both ways to spread a second
  --exact      decide with Redis
  --help       show this text`

const CONFIG = "export default { policies: [{ name: 'per-ip', limit: 60, window: '1m' }] }\n"

const AGENTS = [
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
  'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
  'curl/8.11.0',
]

/** Writes lines. The n-th client sends about 1/n of the requests of the first one (Zipf's law). */
async function writeLog(file: string, lines: number, clients: number, ms: boolean) {
  const random = createRandom(1)
  const out = createWriteStream(file)
  const start = Date.UTC(2026, 0, 2)
  let chunk = ''
  for (let index = 0; index < lines; index += 1) {
    const client = Math.floor(clients ** random())
    const ip = `${10 + (client >> 16)}.${(client >> 8) & 255}.${client & 255}.${(client * 7) & 255}`
    const at = new Date(start + Math.floor((index * 86_400_000) / lines))
    const [, day, month, year, second] = at.toUTCString().split(' ')
    const time = ms ? second + at.toISOString().slice(-5, -1) : second
    const path = `/products/${Math.floor(random() * 300)}?page=${Math.floor(random() * 9)}`
    chunk += `${ip} - - [${day}/${month}/${year}:${time} +0000] "GET ${path} HTTP/1.1" 200 ${5_000 + client} "-" "${AGENTS[client % AGENTS.length]}"\n`
    if (chunk.length < 1_000_000) continue
    if (!out.write(chunk)) await once(out, 'drain')
    chunk = ''
  }
  out.end(chunk)
  await once(out, 'close')
}

/** Runs the command. Its last line on the standard error is what it used. */
async function measure(folder: string, args: string[]) {
  const usage =
    'data:text/javascript,process.on("exit",()=>console.error(JSON.stringify(process.resourceUsage())))'
  const script = fileURLToPath(new URL('../dist/cli.js', import.meta.url))
  const startedAt = performance.now()
  const child = spawn(process.execPath, ['--import', usage, script, 'replay', ...args, '--json'], {
    cwd: folder,
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (part) => (stdout += part))
  child.stderr.on('data', (part) => (stderr += part))
  await once(child, 'close')
  const seconds = (performance.now() - startedAt) / 1_000
  if (child.exitCode !== 0) throw new Error(stderr)
  const { maxRSS, userCPUTime, systemCPUTime } = JSON.parse(stderr.trim().split('\n').at(-1)!)
  const { total, engine } = JSON.parse(stdout)
  return { seconds, cpu: (userCPUTime + systemCPUTime) / 1e6, mb: maxRSS / 1_024, total, engine }
}

async function main(lines: number, clients: number, ms: boolean, exact: boolean) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-replay-'))
  try {
    const file = join(folder, 'access.log')
    await writeLog(file, lines, clients, ms)
    await writeFile(join(folder, 'sluice.config.mjs'), CONFIG)
    console.log(`${lines} lines, ${Math.round((await stat(file)).size / 1e6)} MB`)
    const config = ['--config', 'sluice.config.mjs', ...(exact ? ['--exact'] : [])]
    const { seconds, cpu, mb, total, engine } = await measure(folder, [file, ...config])
    const { low, high } = total.refused
    console.log(
      `Engine ${engine}: between ${low} and ${high} of ${total.requests} requests refused.`,
    )
    console.log(`${Math.round(lines / seconds)} lines/s (${seconds.toFixed(1)} s)`)
    console.log(`${Math.round(lines / cpu)} lines for each second of CPU, without that of Redis`)
    console.log(`${Math.round(mb)} MB of memory at most`)
  } finally {
    await rm(folder, { recursive: true })
  }
}

const options = readScriptOptions(
  {
    lines: { type: 'string', default: '1000000' },
    clients: { type: 'string', default: '50000' },
    ms: { type: 'boolean', default: false },
    exact: { type: 'boolean', default: false },
  },
  USAGE,
)
if (options) await main(Number(options.lines), Number(options.clients), options.ms, options.exact)
