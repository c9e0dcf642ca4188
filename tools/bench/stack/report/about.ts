import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { promisify } from 'node:util'

const lock = createRequire(import.meta.url)('../../../../package-lock.json')
const version = (name: string): string => lock.packages[name && `node_modules/${name}`].version

/** A warning about other load on the machine before a run, which would spoil the figures; empty if there is little. */
export function warningOf([load = 0] = loadavg()): string {
  if (load < availableParallelism() / 2) return ''
  return `**The machine was busy before this run (load average ${load.toFixed(1)}): do not publish these figures.** `
}

/** One sentence about the machine and the versions. Contains no host name and no paths. */
export async function about(redis: string, rounds: number, binary: string): Promise<string> {
  const { stdout } = await promisify(execFile)(binary, ['--version'])
  const model = cpus()[0]?.model.trim() ?? process.arch
  return [
    `Measured on ${new Date().toISOString().slice(0, 10)} on ${availableParallelism()} CPUs (${model}, ${process.platform}),`,
    `Node ${process.versions.node}, ${stdout.trim()}, ${redis},`,
    `Sluice ${version('')}, \`@upstash/ratelimit\` ${version('@upstash/ratelimit')},`,
    `\`hono-rate-limiter\` ${version('hono-rate-limiter')}, \`@upstash/redis\` ${version('@upstash/redis')};`,
    `${rounds} interleaved ${rounds === 1 ? 'round' : 'rounds'}. Values are medians; parentheses show the middle half of the rounds.`,
  ].join(' ')
}
