/**
 * Measures the cost of a long list of networks: once at startup, and for each request.
 *
 *     npx node tools/bench/lists.ts [size]
 */

import { inNetworks, parseAddress } from '../../src/core/base/ip.ts'
import { createGateway, defineConfig } from '../../src/index.ts'

const ROUNDS = 1_000
const ADDRESSES = 1_000

/** The prefix of a network; every fifth is IPv6. `beside: 1` is the unused range next to it, which keeps networks from merging. */
const prefix = (i: number, beside: 0 | 1) =>
  i % 5 === 0
    ? `2001:db8:${(i * 2 + beside).toString(16)}:`
    : `${20 + (i >> 13)}.${(i >> 6) & 127}.${(i & 63) * 2 + beside}`

const networks = (size: number) =>
  Array.from({ length: size }, (_, i) => prefix(i, 0) + (i % 5 === 0 ? ':/48' : '.0/24'))

/** Addresses, half of which are in a network. */
const addresses = (size: number) =>
  Array.from({ length: ADDRESSES }, (_, n) => {
    const i = (n * 7919) % size
    return parseAddress(prefix(i, n % 2 === 0 ? 0 : 1) + (i % 5 === 0 ? ':7' : '.7'))!
  })

/** CPU time in ms, which does not depend on other programs. */
function time(run: () => unknown): number {
  const start = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

const size = Number(process.argv[2] ?? 10_000)
const list = networks(size)
const policies = [{ name: 'per-ip', limit: 100, window: '1m' } as const]
createGateway(defineConfig({ policies })) // warms up the compiler

// The steps of sluice.config.ts and src/worker.ts.
const startup = time(() => createGateway(defineConfig({ policies, deny: { ip: list } })))
const sample = addresses(size)
const includes = inNetworks(list)
const found = sample.filter(includes).length
const lookups = time(() => {
  for (let round = 0; round < ROUNDS; round++) for (const address of sample) includes(address)
})
const each = ((lookups * 1000) / ROUNDS / ADDRESSES).toFixed(2)
console.log(
  `${size} networks: ${startup.toFixed(0)} ms CPU at startup, ${each} µs CPU per lookup (${found} of ${sample.length} addresses are in a network)`,
)
