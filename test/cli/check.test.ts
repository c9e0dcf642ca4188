import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ConfigFolder, configFolder, run, sluice } from '../support/dev-command.ts'
import { blocksOf, pageAt } from '../support/pages.ts'

let configs: ConfigFolder
let write: ConfigFolder['write']
beforeAll(async () => {
  configs = await configFolder()
  write = configs.write
})
afterAll(() => configs.remove())

/** A configuration outside of a project. */
const BY_DEFAULT =
  'Judged as a gateway: no file imports it and calls rateLimiter, createSluice or rateLimitProxy.\n'
const judged = (text: string) => text.replace(/^Judged .*\n/m, BY_DEFAULT)

describe('npm run check -- --policies', () => {
  const check = (...args: string[]) => sluice(['check', '--policies', ...args])

  test('The shipped configuration has no findings.', async () => {
    expect(await run('npm', ['run', '--silent', 'check', '--', '--policies'])).toEqual({
      code: 0,
      stderr: '',
      stdout: '✓ policies\n',
    })
  })

  test('The check prints each finding, its remedy, and where the docs explain it.', async () => {
    const file = await write(
      'findings',
      `export default {
      origin: 'zone',
      policies: [{
        name: 'login',
        limit: 5,
        window: 60,
        match: { path: '/login', method: 'POST' },
        onStoreError: 'allow',
      }],
    }`,
    )
    const args = ['tools/check.ts', '--policies', '--config', file]
    expect(await run(process.execPath, args)).toEqual({
      code: 1,
      stderr: '',
      stdout: `✗ policies
${file}:8:9  login-fails-open  policies[0].onStoreError: "login" protects /login, and allows every attempt while Redis is unavailable.
  Set onStoreError to 'deny' (503), or to 'local' (each isolate counts by itself). npx sluice help login-fails-open
${file}:6:9  unlikely-duration  policies[0].window: "login" has a window of 60 ms.
  Write a unit, as in '10s'. A number without a unit is in milliseconds. npx sluice help unlikely-duration
`,
    })
  })

  test('The findings and the problems of limits have the paths and the places of limits.', async () => {
    const own = (terms: string) => write('limits', `export default {\n  limits: {\n${terms}  },\n}`)
    const file = await own(
      "    a: { limit: 5, window: 60 },\n    b: { limit: 5, window: '1m', cost: 20 },\n",
    )
    const found = await check('--config', file)
    expect(found.code).toBe(1)
    expect(found.stdout).toMatch(
      /:3:20 {2}unlikely-duration {2}limits\.a\.window: "a" has a window of 60 ms\..*:4:34 {2}cost-never-fits {2}limits\.b\.cost: /s,
    )
    expect((await check('--config', await own(''))).stdout).toMatch(
      /:2:3 {2}no-policies {2}limits: The configuration has no limit/,
    )
    expect(
      (await check('--config', await own("    a: { limt: 5, window: '1m' },\n"))).stdout,
    ).toMatch(/:3:10 {2}invalid {2}limits\.a\.limt: unknown field\n {2}Did you mean limit\?/)
    expect(
      await check('--config', await own("    a: { limit: 5, window: '1m' },\n")),
    ).toMatchObject({
      code: 0,
    })
  })

  test('The check prints a hint for each problem, and reports at the end that the configuration does not load.', async () => {
    const file = await write(
      'problems',
      `export default {
      polices: [],
      policies: [{ name: 'a', limit: 0, window: '1m', match: { path: '/api/**' } }],
    }`,
    )
    expect(await check('--config', file)).toEqual({
      code: 1,
      stderr: '',
      stdout: `✗ policies
${file}:3:31  invalid  policies[0].limit: expected a whole number of at least 1, got 0 (in "a")
${file}:3:64  invalid  policies[0].match.path: expected a path like "/login", "/users/:id" or "/api/*", got "/api/**" (in "a")
  Write '/api/*': it covers every path below /api.
${file}:2:7  invalid  polices: unknown field
  Did you mean policies?
The configuration does not load until every invalid setting is fixed. npx sluice help NAME describes a field.
${BY_DEFAULT}`,
    })
  })

  test('A configuration without an origin is a finding, unless wrangler.toml beside it has the variable ORIGIN.', async () => {
    const config = "export default { policies: [{ name: 'a', limit: 5, window: '1m' }] }"
    const file = await write('no-origin', config)
    const { code, stdout } = await check('--config', file)
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^✗ policies\n\S+:1:16 {2}no-origin {2}origin: The configuration has no origin: .*\n {2}Set origin to 'zone'/,
    )
    const toml = join(configs.folder, 'wrangler.toml')
    await writeFile(toml, 'name = "a"\n[vars]\nORIGIN = "https://origin.example.com"\n')
    try {
      expect(await check('--config', file)).toMatchObject({
        code: 0,
        stdout: `✓ policies\n${BY_DEFAULT}`,
      })
    } finally {
      await rm(toml)
    }
  })

  test('The guide shows what the check says of expectations that fail, and of expectations that hold.', async () => {
    const blocks = blocksOf(pageAt('docs/guides/test-policies.md'))
    const [config, held, failed] = blocks
      .filter(({ name }) => name.startsWith('expectations'))
      .map(({ code }) => code.replace(/^\$ .*\n/, ''))
    const plain = config!.replace(/^import .*$/m, 'const defineConfig = (one) => one')
    const file = await write('expectations', plain)
    expect(await check('--config', file)).toEqual({ code: 0, stderr: '', stdout: judged(held!) })
    const broken = plain.replace('limit: 5,', 'limit: 10,').replace("'refuse'", "'skip'")
    const other = await write('expectations-broken', broken)
    expect(await check('--config', other)).toEqual({
      code: 1,
      stderr: '',
      stdout: judged(failed!).replaceAll('sluice.config.ts:', `${other}:`),
    })
  })

  test('As JSON the check has the place of each finding, and as annotations of GitHub it has the line.', async () => {
    const file = await write(
      'two',
      `export default {
  origin: 'zone', policies: [
    { name: 'login', limit: 5, window: '1m', match: { path: '/login' },
      onStoreError: 'allow' },
  ],
}`,
    )
    const json = await check('--config', file, '--json')
    expect(json.code).toBe(1)
    const { passes, checks, findings } = JSON.parse(json.stdout)
    expect([passes, checks[0].status]).toEqual([false, 'failed'])
    expect(findings).toEqual([
      expect.objectContaining({ code: 'login-fails-open', place: `${file}:4:7` }),
    ])
    const { code, stdout } = await check('--config', file, '--format', 'github')
    expect(code).toBe(1)
    const [{ message, hint }] = findings
    expect(stdout).toContain(
      `\n::error file=${file},line=4,col=7,title=login-fails-open::policies[0].onStoreError: ${message} ${hint}\n`,
    )
    expect(await check('--format', 'xml')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--format: expected text, json or github, got "xml"'),
    })
  })

  test('A check that has read nothing has no tick.', async () => {
    const missing = await sluice(['check', '--config', join(configs.folder, 'none.ts')])
    expect(missing).toMatchObject({ code: 1, stderr: '' })
    expect(missing.stdout).not.toContain('✓')
    expect(missing.stdout).toContain(
      '– bindings (not checked: the configuration does not load)\n– namespace (not checked: ',
    )
  })

  test('A problem of the configuration is reported once, and not by each check that needs it.', async () => {
    const file = await write('invalid', "export default { policies: [{ name: 'a', limit: 0 }] }")
    const built = join(configs.folder, 'sluice.built.ts')
    await writeFile(built, '')
    try {
      const { code, stdout } = await sluice(['check', '--config', file])
      expect(code).toBe(1)
      expect(stdout.match(/^. \w+/gm)).toEqual([
        '✗ policies',
        '– bindings',
        '– namespace',
        '– build',
      ])
      expect(stdout.match(/expected a whole number/g)).toHaveLength(1)
    } finally {
      await rm(built)
    }
  })

  test('A terminal shows marks, codes and hints in colours, unless NO_COLOR is set.', async () => {
    const file = await write('colours', "export default { origin: 'zone', policies: [] }")
    const args = ['check', '--policies', '--config', file]
    const plain = await sluice(args)
    process.stdout.hasColors = () => process.env.NO_COLOR === undefined
    try {
      const { stdout } = await sluice(args)
      expect(stdout).toContain('\x1b[31m✗\x1b[39m policies\n')
      expect(stdout).toContain('\x1b[33mno-policies\x1b[39m')
      expect(stdout).toContain('\n\x1b[2m  ')
      expect(stripVTControlCharacters(stdout)).toBe(plain.stdout)
      expect(await sluice(args, { env: { NO_COLOR: '1' } })).toEqual(plain)
      const json = await sluice([...args, '--json'])
      expect(json).toEqual({ ...json, stdout: stripVTControlCharacters(json.stdout) })
    } finally {
      Reflect.deleteProperty(process.stdout, 'hasColors')
    }
  })

  test('A mistake on the command line is reported with the usage.', async () => {
    const { code, stdout, stderr } = await run(process.execPath, ['tools/check.ts', '--polices'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^Unknown option '--polices'\n\nChecks this project [\s\S]*npm run check -- /,
    )
  })
})
