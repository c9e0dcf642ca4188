import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { availableParallelism, cpus } from 'node:os'
import { promisify } from 'node:util'

const lock = createRequire(import.meta.url)('../../../package-lock.json')
const version = (name: string): string => lock.packages[name && `node_modules/${name}`].version

/** One sentence about the machine and the versions. Contains no host name and no paths. */
export async function about(redis: string, rounds: number, binary: string): Promise<string> {
  const { stdout } = await promisify(execFile)(binary, ['--version'])
  const model = cpus()[0]?.model.trim() ?? process.arch
  return [
    `Measured on ${new Date().toISOString().slice(0, 10)} on ${availableParallelism()} CPUs (${model}, ${process.platform}),`,
    `Node ${process.versions.node}, ${stdout.trim()}, ${redis},`,
    `Sluice ${version('')}, \`@upstash/ratelimit\` ${version('@upstash/ratelimit')},`,
    `\`hono-rate-limiter\` ${version('hono-rate-limiter')}, \`@upstash/redis\` ${version('@upstash/redis')};`,
    `${rounds} interleaved ${rounds === 1 ? 'round' : 'rounds'}. Values are medians; parentheses show the lowest and the highest round.`,
  ].join(' ')
}
