import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { findServer } from '../src/find.ts'
import { type Bridge, freePort, type RunningRedis, startBridge, startRedis } from '../src/index.ts'
import { REDIS } from '../src/redis-server.ts'
import { Traffic, until } from './traffic.ts'

vi.setConfig({ testTimeout: 120_000 })

const COUNT = "return redis.call('INCR', KEYS[1])"
const urls: string[] = []
const sentinels: ChildProcess[] = []
let folder: string
let master: RunningRedis
let replica: RunningRedis
let bridge: Bridge
let traffic: Traffic | undefined

async function ask(url: string, ...command: string[]): Promise<unknown> {
  const client = createClient({ url, RESP: 2 }).on('error', () => {})
  await client.connect()
  return client.sendCommand(command).finally(() => client.destroy())
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bridge-sentinel-'))
  master = await startRedis({ own: true })
  const { port } = new URL(master.url)
  const args = ['--replicaof', '127.0.0.1', port, '--repl-diskless-sync-delay', '0']
  replica = await startRedis({ own: true, args })
  const server = await findServer(REDIS)
  for (let index = 0; index < 3; index++) {
    const own = await freePort()
    const file = join(folder, `sentinel-${index}.conf`)
    const lines = [
      `port ${own}`,
      'bind 127.0.0.1',
      `dir ${folder}`,
      `sentinel monitor main 127.0.0.1 ${port} 2`,
      'sentinel down-after-milliseconds main 1000',
      'sentinel failover-timeout main 5000',
    ]
    await writeFile(file, lines.join('\n'))
    const env = { ...process.env, ...server.env }
    const options = { argv0: server.argv0, env, stdio: 'ignore' as const }
    sentinels.push(spawn(server.file, [file, '--sentinel'], options))
    urls.push(`redis://127.0.0.1:${own}`)
  }
  const known = async (url: string) => String(await ask(url, 'SENTINEL', 'MASTER', 'main'))
  for (const url of urls) {
    await until(async () => expect(await known(url)).toMatch(/num-slaves,1,num-other-sentinels,2/))
  }
  bridge = await startBridge({ sentinel: { name: 'main', urls }, timeout: 20_000 })
}, 90_000)
afterAll(async () => {
  await traffic?.stop()
  await bridge?.close()
  for (const child of sentinels) {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
  await Promise.all([master?.stop(), replica?.stop()])
  if (folder) await rm(folder, { recursive: true })
})

test('Sentinels that do not know the name are an error.', async () => {
  await expect(startBridge({ sentinel: { name: 'other', urls } })).rejects.toThrow(
    'The sentinels name no master "other" that responds',
  )
})

test('After a failover by the sentinels all calls go to the new master, and none runs twice.', async (context) => {
  traffic = new Traffic(bridge, 100, ['a', 'b', 'c'], (key) => ['eval', COUNT, 1, key])
  await until(() => expect(traffic!.answers.length).toBeGreaterThan(100))
  const info = String(await ask(master.url, 'INFO', 'server'))
  process.kill(Number(/process_id:(\d+)/.exec(info)?.[1]), 'SIGKILL')
  await until(async () => expect(String(await ask(replica.url, 'ROLE'))).toContain('master'))
  const promoted = performance.now()
  const served = () =>
    traffic!.answers.some(({ status, sent }) => status === 200 && sent > promoted)
  await until(() => expect(served()).toBe(true))
  const answers = await traffic!.stop()
  const failed = answers.filter(({ status }) => status !== 200)
  expect(
    failed.every(({ status, error }) => status === 503 && error?.startsWith('ERR Redis ')),
  ).toBe(true)
  let lost = 0
  for (const key of ['a', 'b', 'c']) {
    const own = answers.filter((answer) => answer.key === key)
    const kept = Number(await ask(replica.url, 'GET', key))
    expect(kept).toBeLessThanOrEqual(own.length)
    lost += Math.max(0, own.filter(({ status }) => status === 200).length - kept)
  }
  await context.annotate(JSON.stringify({ requests: answers.length, failed: failed.length, lost }))
})
