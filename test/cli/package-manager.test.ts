import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { packageManagerOf } from '../../cli/project/package-manager.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sluice-manager-'))
})
afterEach(() => rm(root, { recursive: true }))

const LOCKFILES: Record<string, string[]> = {
  npm: ['package-lock.json', 'npm-shrinkwrap.json'],
  pnpm: ['pnpm-lock.yaml'],
  yarn: ['yarn.lock', '.yarnrc.yml'],
  bun: ['bun.lock', 'bun.lockb'],
}
const NAMES = Object.keys(LOCKFILES)
const agentOf = (name: string) => `${name}/9.9.9 npm/? node/v24.0.0 linux x64`
const noAgent = ['', 'deno/2.0.0']

/** How a folder says which package manager it uses: a file, or a field of package.json. */
type Sign = { file: string } | { fields: object }

const signs = (name: string): Sign[] => [
  ...LOCKFILES[name]!.map((file) => ({ file })),
  { fields: { packageManager: `${name}@10.1.0+sha512.abc` } },
  { fields: { packageManager: name } },
  { fields: { devEngines: { packageManager: { name, version: '>=1' } } } },
  { fields: { devEngines: { packageManager: [{ name }] } } },
]

async function writeFolder(folder: string, sign?: Sign, fields: object = {}): Promise<string> {
  await mkdir(folder, { recursive: true })
  if (sign && 'file' in sign) await writeFile(join(folder, sign.file), '')
  const all = { ...fields, ...(sign && 'fields' in sign && sign.fields) }
  await writeFile(join(folder, 'package.json'), JSON.stringify(all))
  return folder
}

const anyName = fc.constantFrom(...NAMES)
const anySign = fc
  .constantFrom(...NAMES)
  .chain((name) => fc.record({ name: fc.constant(name), sign: fc.constantFrom(...signs(name)) }))
const anyAgent = fc.constantFrom(...noAgent, ...NAMES.map(agentOf))
const anyRoot = fc.constantFrom<object>(
  { workspaces: ['packages/*'] },
  { workspaces: { packages: ['**'] } },
)

test('In a workspace the root says which package manager is used, whichever one runs the command.', async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(
      anySign,
      anyRoot,
      anyAgent,
      fc.integer({ min: 0, max: 3 }),
      async ({ name, sign }, fields, agent, depth) => {
        const top = await writeFolder(join(root, String(count++)), sign, fields)
        const folder = await writeFolder(join(top, ...Array(depth).fill('a')), undefined, {
          ...(depth === 0 && { ...fields, ...('fields' in sign && sign.fields) }),
        })
        expect(packageManagerOf(folder, agent).name).toBe(name)
      },
    ),
  )
})

test('The files of pnpm-workspace.yaml make a workspace, too.', async () => {
  await writeFolder(root)
  await writeFile(join(root, 'pnpm-workspace.yaml'), 'packages: ["packages/*"]\n')
  const folder = await writeFolder(join(root, 'packages/api'))
  expect(packageManagerOf(folder, agentOf('npm')).name).toBe('pnpm')
})

test('The nearest folder decides.', async () => {
  await writeFolder(root, { file: 'yarn.lock' }, { workspaces: ['**'] })
  const folder = await writeFolder(join(root, 'a'), { file: 'bun.lock' })
  expect(packageManagerOf(folder, '').name).toBe('bun')
})

test('A lockfile has more weight than the field of package.json, which has more than the command that runs.', async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(
      ...([anyName, anyName, anyAgent, fc.boolean()] as const),
      async (locked, named, agent, isLocked) => {
        const folder = join(root, String(count++))
        await writeFolder(folder, { fields: { packageManager: `${named}@1.0.0` } })
        if (isLocked) await writeFile(join(folder, LOCKFILES[locked]![0]!), '')
        expect(packageManagerOf(folder, agent).name).toBe(isLocked ? locked : named)
      },
    ),
  )
})

test('Of two lockfiles in one folder the field decides, whatever runs the command.', async () => {
  await writeFolder(root, { fields: { packageManager: 'pnpm@10.0.0' } })
  for (const file of ['yarn.lock', 'pnpm-lock.yaml']) await writeFile(join(root, file), '')
  expect(packageManagerOf(root, agentOf('yarn')).name).toBe('pnpm')
})

test('Of two lockfiles in one folder the package manager that runs the command has its own.', async () => {
  await writeFolder(root, { file: 'package-lock.json' })
  await writeFile(join(root, 'pnpm-lock.yaml'), '')
  expect(packageManagerOf(root, agentOf('npm')).name).toBe('npm')
  expect(packageManagerOf(root, agentOf('bun')).name).toBe('pnpm')
})

test.each(NAMES)('A project without a lockfile uses %s if it runs the command.', async (name) => {
  // A lockfile in a folder of the user, above the project, is about no workspace.
  await writeFolder(root, { file: 'yarn.lock' })
  const folder = await writeFolder(join(root, 'new'))
  expect(packageManagerOf(folder, agentOf(name)).name).toBe(name)
  for (const agent of noAgent) expect(packageManagerOf(folder, agent).name).toBe('npm')
})
