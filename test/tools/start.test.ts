/** `npm start`, which runs the Worker of this repository as `sluice dev` runs that of a project. */

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { Series } from '../../src/features/observe/index.ts'
import { openSession } from '../support/dashboard-session.ts'
import { inProcess } from '../support/dev-command.ts'
import { copyProject, type Project, processes, waitUntilEnded } from '../support/npm-start.ts'

let project: Project
beforeAll(async () => {
  project = await copyProject('start')
})
afterEach(() => project.kill())
afterAll(() => project.remove())

test('npm start runs the Worker, its dashboard counts without observe() in the configuration, and SIGKILL leaves nothing running.', async () => {
  const run = await project.npmStart()
  const response = await fetch(`${run.url}/hello`)
  expect(response.status).toBe(200)
  expect(response.headers.get('ratelimit')).toMatch(/^"per-ip";r=9;t=\d+$/)
  expect(await response.json()).toMatchObject({ url: '/hello' })
  for (const word of ['Redis', 'Bridge', 'Origin', 'Worker', 'per-ip', `curl -i ${run.url}/`]) {
    expect(run.output()).toContain(word)
  }
  const [, address = ''] = /Dashboard: .*\s+(http:\S+)/.exec(run.output())!
  const headers = { Cookie: await openSession({ address }) }
  const { total } = await (
    await fetch(`${new URL(address).origin}/_sluice/v1/stats`, { headers })
  ).json()
  expect((total.series as Series[]).map(({ outcome }) => outcome)).toContain('allowed')
  const family = processes(run.pid)
  process.kill(family.find(({ command }) => /tools\/start\.ts/.test(command))!.pid, 'SIGKILL')
  await run.ended
  await waitUntilEnded(family)
}, 120_000)

test('npm start reports a port that is in use.', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  vi.resetModules()
  const env = { PORT: String(port) }
  expect(await inProcess(() => import('../../tools/start.ts'), { env })).toEqual({
    code: 1,
    stdout: '',
    stderr: `\nCould not start: port ${port} is in use. Choose another port: PORT=${port + 1} npm start\n`,
  })
  server.close()
})

test('npm start -- --store durable-objects counts without a Redis.', async () => {
  const run = await project.npmStart({}, '--', '--store', 'durable-objects')
  const statuses: number[] = []
  for (let n = 0; n < 11; n++) statuses.push((await fetch(`${run.url}/hello`)).status)
  expect(statuses.indexOf(429)).toBe(10)
  expect(run.output()).toContain('a Durable Object counts for each client')
  expect(processes(run.pid).some(({ command }) => /redis|valkey/.test(command))).toBe(false)
}, 120_000)
