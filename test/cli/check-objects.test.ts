/** `sluice check` with `durableObjects()`: what the configuration of wrangler and the Worker need. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { objectProblems } from '../../cli/check/objects.ts'
import { gatewayFiles } from '../../cli/init/templates.ts'
import { creationIn } from '../../cli/project/object-lines.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { durableObjects } from '../../src/stores/durable-objects/index.ts'
import { type CliProject, cliProject } from '../support/cli-project.ts'

const MIGRATIONS = `[[migrations]]
tag = "v1"
new_sqlite_classes = ["SluiceSubject"]
`
const toml = `name = "shop"
main = "src/worker.ts"
compatibility_date = "2026-10-01"

[[durable_objects.bindings]]
name = "SLUICE_SUBJECT"
class_name = "SluiceSubject"

${MIGRATIONS}`
const { 'wrangler.jsonc': jsonc, ...written } = gatewayFiles('shop', true)
written['src/worker.ts'] = written['src/worker.ts']!.replace(
  /.*sluice\.built'/,
  "import { createGateway } from 'sluice'\nimport config from '../sluice.config'",
)
const files: Record<string, string> = { ...written, 'wrangler.toml': toml }
const worker = files['src/worker.ts']!

let project: CliProject
beforeAll(async () => {
  project = await cliProject()
})
beforeEach(async () => {
  for (const [name, text] of Object.entries(files)) await project.write(name, text)
})
afterAll(() => project.remove())

/** The findings. */
async function problems(file = 'wrangler.toml', options = {}): Promise<string[]> {
  const policies = [{ name: 'per-ip', limit: 10, window: '1m' }]
  const config = parseConfig({ store: durableObjects(options), policies })
  return objectProblems(config, join(project.folder, file))
}

const without = (text: string, part: RegExp) => {
  expect(text).toMatch(part)
  return text.replace(part, '')
}
const BINDING = /\[\[durable_objects[\s\S]*?\n\n/
const MIGRATION = /\[\[migrations[\s\S]*$/
const EXPORT = /export \{.*\n/

test('npx sluice check prints the lines to add for each of the three missing parts.', async () => {
  await project.write('wrangler.toml', without(without(toml, BINDING), MIGRATION))
  await project.write('src/worker.ts', without(worker, EXPORT))
  const { code, stdout } = await project.sluice(['check'])
  expect(code).toBe(1)
  expect(stdout).toBe(`✓ policies
✗ bindings
store: wrangler.toml has no binding SLUICE_SUBJECT. Add:

  [[durable_objects.bindings]]
  name = "SLUICE_SUBJECT"
  class_name = "SluiceSubject"

store: wrangler.toml does not create SluiceSubject. Add:

  [exports.SluiceSubject]
  type = "durable-object"
  storage = "sqlite"

store: src/worker.ts does not export SluiceSubject. Add:

  export { SluiceSubject } from 'sluice/durable-objects'

✓ namespace (none)
Judged as a gateway: src/worker.ts calls createGateway.
`)
})

test('Only the missing part is reported: the migration.', async () => {
  await project.write('wrangler.toml', without(toml, MIGRATION))
  expect(await problems()).toEqual([
    expect.stringMatching(/^store: wrangler.toml does not create SluiceSubject. Add:\n/),
  ])
})

test('A class with another storage than SQLite is an error.', async () => {
  await project.write('wrangler.toml', toml.replace('new_sqlite_classes', 'new_classes'))
  expect(await problems()).toEqual([
    'store: wrangler.toml creates SluiceSubject without SQLite. Write new_sqlite_classes instead of new_classes.',
  ])
})

test('The binding of the configuration and the class of the binding may have other names.', async () => {
  const options = { binding: 'COUNTS' }
  const found = async () => (await problems('wrangler.toml', options)).join('\n')
  expect(await found()).toContain('store: wrangler.toml has no binding COUNTS. Add:')
  await project.write(
    'wrangler.toml',
    toml.replace('SLUICE_SUBJECT', 'COUNTS').replaceAll('SluiceSubject', 'Counter'),
  )
  expect(await found()).toContain(
    "export { SluiceSubject as Counter } from 'sluice/durable-objects'",
  )
  await project.write(
    'src/worker.ts',
    worker.replace('{ SluiceSubject }', '{ SluiceSubject as Counter }'),
  )
  expect(await found()).toBe('')
})

test('A class that was renamed, deleted or is of another Worker is followed.', async () => {
  const renamed =
    '[[migrations]]\ntag = "2"\nrenamed_classes = [{ from = "Old", to = "SluiceSubject" }]\n'
  const old = toml.replace('["SluiceSubject"]', '["Old"]')
  await project.write('wrangler.toml', `${old}\n${renamed}`)
  expect(await problems()).toEqual([])
  await project.write(
    'wrangler.toml',
    `${toml}\n[[migrations]]\ntag = "2"\ndeleted_classes = ["SluiceSubject"]\n`,
  )
  expect((await problems()).join()).toContain('does not create SluiceSubject')
  const elsewhere = 'class_name = "SluiceSubject"\nscript_name = "counts"'
  await project.write(
    'wrangler.toml',
    without(toml, MIGRATION).replace('class_name = "SluiceSubject"', elsewhere),
  )
  await project.write('src/worker.ts', without(worker, EXPORT))
  expect(await problems()).toEqual([])
})

describe('the field that creates the class', () => {
  const base = { name: 'shop', main: 'src/worker.ts', compatibility_date: '2026-10-01' }
  const OTHER = { name: 'OTHER', class_name: 'Other', script_name: 'other' }
  const OLD = { type: 'durable-object', storage: 'sqlite' }
  const found = async (fields: object) => {
    await project.write('wrangler.jsonc', JSON.stringify({ ...base, ...fields }))
    return (await problems('wrangler.jsonc')).join('\n')
  }
  afterEach(() => rm(join(project.folder, 'wrangler.jsonc'), { force: true }))

  test('What init writes has no problem.', async () => {
    await project.write('wrangler.jsonc', jsonc!)
    expect(await problems('wrangler.jsonc')).toEqual([])
  })

  test('Without either field the lines are exports in JSON, and whole fields.', async () => {
    const text = await found({})
    expect(text).toContain('  "durable_objects": {\n    "bindings": [\n')
    expect(text).toContain('  "exports": {\n    "SluiceSubject": {\n')
  })

  test('In fields that exist the lines are an entry, since a second field would replace the first.', async () => {
    const text = await found({ durable_objects: { bindings: [OTHER] }, exports: { Old: OLD } })
    expect(text).toContain('  // in "durable_objects.bindings":\n  {"name":"SLUICE_SUBJECT",')
    expect(text).toContain('  // in "exports":\n  "SluiceSubject": {\n')
    expect(text).not.toContain('migrations')
  })

  test('A configuration with migrations gets a migration and never exports, which exclude each other.', async () => {
    const text = await found({ migrations: [{ tag: 'v1', new_sqlite_classes: ['Old'] }] })
    expect(text).toContain('  // in "migrations":\n  {"tag":"sluice-1","new_sqlite_classes":')
    expect(text).not.toContain('"exports"')
  })

  test('A class of exports with the old storage is told of storage.', async () => {
    const durable_objects = { bindings: [{ name: 'SLUICE_SUBJECT', class_name: 'SluiceSubject' }] }
    const exports = { SluiceSubject: { type: 'durable-object', storage: 'legacy-kv' } }
    expect(await found({ durable_objects, exports })).toBe(
      'store: wrangler.jsonc creates SluiceSubject without SQLite. Write the storage "sqlite".',
    )
  })

  test.each([
    ['4.106.9', '[[migrations]]'],
    ['4.107.0', '[exports.SluiceSubject]'],
    ['5.0.0', '[exports.SluiceSubject]'],
    ['3.114.0', '[[migrations]]'],
  ])('A project with wrangler %s gets %s.', async (version, line) => {
    const none = { bindings: false, exports: false, migrations: false }
    const folder = join(project.folder, 'old')
    await project.write('old/node_modules/wrangler/package.json', JSON.stringify({ version }))
    expect(creationIn(folder, 'wrangler.toml', none)).toContain(line)
  })
})

test('A Worker that does not bundle is reported with the place of its mistake.', async () => {
  await project.write('src/worker.ts', "import './nothing'\n")
  await expect(problems()).rejects.toThrow(/^src\/worker\.ts:1:8: Could not resolve "\.\/nothing"$/)
})

test('npx sluice dev names what a store lacks instead of running a Worker that fails, and names another store.', async () => {
  await project.write('wrangler.toml', without(toml, BINDING))
  const refused = await project.sluice(['dev'], { env: { PORT: String(await freePort()) } })
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain(
    'Could not start: store: wrangler.toml has no binding SLUICE_SUBJECT. Add:\n\n  [[durable_objects.bindings]]\n',
  )
  await project.write('wrangler.toml', toml)
  const run = await project.dev()
  try {
    const config = files['sluice.config.ts']!
    const stores = /^.*durableObjects.*\n/gm
    await project.write('sluice.config.ts', config.replace(stores, ''))
    const output = () => run.output()
    await expect
      .poll(output, { timeout: 20_000 })
      .toMatch(/^The store is now Redis \(redis:.*\): all quotas start anew\.$/m)
    await project.write('sluice.config.ts', config)
    await expect
      .poll(output, { timeout: 20_000 })
      .toContain('The store is now Durable Objects: all quotas start anew.')
    await project.write('src/worker.ts', without(worker, EXPORT))
    await expect
      .poll(output, { timeout: 20_000 })
      .toContain('Not reloaded: store: src/worker.ts does not export SluiceSubject. Add:')
  } finally {
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
}, 90_000)
