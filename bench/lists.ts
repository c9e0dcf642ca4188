/**
 * What a long list of networks costs: once at start-up, and each request.
 *
 *     npx node --import ./bench/lua-loader.mjs bench/lists.ts [size]
 */

import { inNetworks, parseAddress } from '../src/base/ip.ts'
import { createGateway, defineConfig } from '../src/index.ts'

const ROUNDS = 1_000
const ASKED = 1_000

/** The prefix of a network: of five one IPv6. With odd numbers the place beside it, so that no two networks become one. */
const prefix = (i: number, beside: 0 | 1) =>
  i % 5 === 0
    ? `2001:db8:${(i * 2 + beside).toString(16)}:`
    : `${20 + (i >> 13)}.${(i >> 6) & 127}.${(i & 63) * 2 + beside}`

const networks = (size: number) =>
  Array.from({ length: size }, (_, i) => prefix(i, 0) + (i % 5 === 0 ? ':/48' : '.0/24'))

/** Half of them in a network. */
const addresses = (size: number) =>
  Array.from({ length: ASKED }, (_, n) => {
    const i = (n * 7919) % size
    return parseAddress(prefix(i, n % 2 === 0 ? 0 : 1) + (i % 5 === 0 ? ':7' : '.7'))!
  })

/** Milliseconds of the processor's time, which other programs do not lengthen. */
function time(run: () => unknown): number {
  const start = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

const size = Number(process.argv[2] ?? 10_000)
const list = networks(size)
const policies = [{ name: 'per-ip', limit: 100, window: '1m' } as const]
createGateway(defineConfig({ policies })) // what is there to compile without a list

// As sluice.config.ts and src/worker.ts do it.
const startup = time(() => createGateway(defineConfig({ policies, deny: { ip: list } })))
const asked = addresses(size)
const includes = inNetworks(list)
const found = asked.filter(includes).length
const lookups = time(() => {
  for (let round = 0; round < ROUNDS; round++) for (const address of asked) includes(address)
})
const each = ((lookups * 1000) / ROUNDS / ASKED).toFixed(2)
console.log(
  `${size} networks: ${startup.toFixed(0)} ms at start-up; ${each} µs a peek-up (${found} of ${asked.length} in one)`,
)
