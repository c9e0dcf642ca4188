import type { BenchServer } from '../server.ts'
import { type Contender, record } from './contender.ts'
import { regular } from './past.ts'

/** Memory in bytes of all keys of one client. */
export interface Bytes {
  ipv4: number
  ipv6: number
}

export const CLIENTS = { ipv4: '203.0.113.207', ipv6: '2001:db8:85a3:8d3:1319:8a2e:370:7348' }

export async function countBytes(server: BenchServer, contender: Contender): Promise<Bytes> {
  return {
    ipv4: await bytesOf(server, contender, CLIENTS.ipv4),
    ipv6: await bytesOf(server, contender, CLIENTS.ipv6),
  }
}

async function bytesOf(server: BenchServer, contender: Contender, client: string): Promise<number> {
  const keys = new Set<string>()
  for (const question of regular(client)) {
    for (const call of await record(contender, question)) {
      for (const key of call.keys) keys.add(key)
    }
    await contender.ask(server.call, question)
    if (question.at) await age(server, [...keys], Date.now() - question.at)
  }
  let bytes = 0
  for (const key of keys) {
    bytes += Number((await server.send('MEMORY', 'USAGE', key, 'SAMPLES', '0')) ?? 0)
  }
  return bytes / contender.decisions
}

/** Shortens the TTL of keys by `ms`, since Redis took keys that were written in the past as new. */
async function age(server: BenchServer, keys: string[], ms: number): Promise<void> {
  for (const key of keys) {
    const ttl = Number(await server.send('PTTL', key))
    if (ttl >= 0) await server.send('PEXPIRE', key, `${ttl - ms}`)
  }
}
