import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { builtWorkingTree } from '../../tools/differential/builds.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const differential = join(root, 'tools/differential.ts')
let built: string
beforeAll(() => {
  built = builtWorkingTree()
}, 300_000)

/** Compares this folder with another package, in configurations that have a part. */
async function compare(folder: string, only: string, requests = 400, ...options: string[]) {
  const args = [differential, '--against', folder, '--only', only, '--requests', `${requests}`]
  try {
    return (
      await promisify(execFile)(process.execPath, [...args, ...options], {
        cwd: root,
        maxBuffer: 2 ** 28,
      })
    ).stdout
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    if (code !== 1 || stderr) throw error
    return stdout
  }
}

/** Copies the built package, with a module that replaces names of one entry. */
async function planted(entry: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(dirname(built), 'planted-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await cp(built, folder, { recursive: true })
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const file = manifest.exports[entry].default
  manifest.exports[entry].default = './planted.js'
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  const module = `import * as real from '${file}'\nexport * from '${file}'\n${text}`
  await writeFile(join(folder, 'planted.js'), module)
  return folder
}

/** A limiter whose options are changed before it is made. */
const withOptions = (name: string, change: string) =>
  `export const ${name} = (options, ...rest) => real.${name}({ ...options, ${change} }, ...rest)`
const withPolicies = (field: string, value: string) =>
  ['createSluice', 'createGateway', 'rateLimiter']
    .map((name) =>
      withOptions(
        name,
        `policies: options.policies.map((one) => one.${field} ? { ...one, ${field}: ${value} } : one)`,
      ),
    )
    .join('\n')

/** For each part, an entry of the package and a fault in it. */
const faults: [part: string, entry: string, text: string][] = [
  ['app', '.', withOptions('createSluice', `headers: 'off'`)],
  ['gateway', '.', withOptions('createGateway', `headers: 'off'`)],
  ['hono', '.', withOptions('rateLimiter', `headers: 'off'`)],
  ['http', './node', withOptions('rateLimiter', `headers: 'off'`)],
  ['express', './node', withOptions('rateLimiter', `headers: 'off'`)],
  ['fastify', './node', withOptions('fastifyRateLimiter', `headers: 'off'`)],
  ['next', './next', withOptions('rateLimitProxy', `headers: 'off'`)],
  ['wait', '.', withPolicies('wait', `'1ms'`)],
  [
    'banList',
    '.',
    withPolicies('penalty', `one.penalty.list ? { ...one.penalty, list: false } : one.penalty`),
  ],
  [
    'verify',
    '.',
    `export function createSluice(options) {
      const { check } = real.createSluice(options)
      return {
        check(request, runtime) {
          request.headers.delete('sluice-verify')
          return check(request, runtime)
        },
      }
    }`,
  ],
  [
    'durableObjects',
    './durable-objects',
    `export class SluiceSubject extends real.SluiceSubject {
      async fetch(request) {
        const call = await request.json()
        const send = (body) => super.fetch(new Request(request.url, { method: 'POST', body: JSON.stringify(body) }))
        await send({ ...call, id: call.id + '-again' })
        return send(call)
      }
    }`,
  ],
]

describe('The differential', { timeout: 300_000 }, () => {
  test('finds nothing in a copy of this folder.', async () => {
    const folder = await planted('.', '')
    expect(await compare(folder, 'policies', 2000)).toMatch(/^Equal to /m)
  })

  test.each(faults)('finds a fault of the part %s.', async (part, entry, text) => {
    const folder = await planted(entry, text)
    expect(await compare(folder, part)).toMatch(/^A difference, with --seed /m)
  })

  test('counts excepted differences as none, and says how many there are.', async () => {
    const folder = await planted('.', withOptions('createSluice', `headers: 'off'`))
    const output = await compare(folder, 'app', 400, '--except', '^\\.answers\\.\\d+\\.headers')
    expect(output).toMatch(/^\d+ configurations with nothing but excepted differences\.$/m)
    expect(output).toMatch(/^Equal to /m)
  })

  test('leaves out a field that only one side accepts, and says so.', async () => {
    const refusing = `export function createSluice(options) {
      if ('cors' in options && options.cors) throw new real.ConfigError([{ path: 'cors', expected: 'no such field', got: '' }])
      return real.createSluice(options)
    }`
    const output = await compare(await planted('.', refusing), 'app')
    expect(output).toMatch(/^Left out, because only the side old refuses it: cors: /m)
    expect(output).toMatch(/^Equal to /m)
  })
})
