/** The program of the guide "Move from express-rate-limit", in an Express app. */
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import express, { type RequestHandler } from 'express'
import { expect, onTestFinished, test, vi } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { blocksOf, pageAt, root } from '../support/pages.ts'

const database = useDatabase()

/** Runs the program with an app, and with the handler of its route. */
async function appOf(login: RequestHandler) {
  const page = pageAt('docs/guides/migrate-from-express-rate-limit.md')
  const { code } = blocksOf(page).find(({ name }) => name === 'express-app')!
  const [imports, program] = code.split('\n\n', 2) as [string, string]
  const folder = join(root, 'node_modules/.cache/express-guide')
  await mkdir(folder, { recursive: true })
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'app.ts')
  const ofPackage = imports.replace('sluice/node', join(root, 'src/hosts/node/node.ts'))
  await writeFile(
    file,
    `${ofPackage}\nexport default (app, login) => {\n${code.slice(imports.length)}\n}\n`,
  )
  expect(program).toContain('app.use(')
  const { default: run } = await import(pathToFileURL(file).href)
  const app = express()
  vi.stubEnv('REDIS_URL', database.redis.url)
  onTestFinished(() => void vi.unstubAllEnvs())
  run(app, login)
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('Five failed logins of an address pass, the sixth gets the body of the guide, and successful ones are free.', async () => {
  const url = await appOf((req, res) => void res.sendStatus(req.headers['x-password'] ? 200 : 401))
  const send = (address: string, headers = {}, path = '/login') =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'x-forwarded-for': address, ...headers },
    })
  const good = { 'x-password': 'x' }
  for (let count = 0; count < 6; count++) expect((await send('192.0.2.1', good)).status).toBe(200)
  for (let count = 0; count < 5; count++) {
    await expect.poll(async () => (await send('192.0.2.2')).status).toBe(401)
  }
  const refused = await send('192.0.2.2', good, '//Login/')
  expect(refused.status).toBe(429)
  expect(await refused.json()).toEqual({ error: 'Too many logins' })
  expect(refused.headers.get('ratelimit-policy')).toBe('"login";q=5;w=900')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
})
